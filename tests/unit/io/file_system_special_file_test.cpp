// SPDX-License-Identifier: Apache-2.0
//
// Tests with special names in a directory that others may write to: links, pipes, devices, sockets.
#include "support/catch.hpp"
#include "support/file_text.hpp"
#include "support/temporary_directory.hpp"

#include <stepwell/io/atomic_file.hpp>
#include <stepwell/io/file_system.hpp>

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <cstring>
#include <filesystem>
#include <string>

namespace sw = stepwell;
namespace io = stepwell::io;
using sw::test::file_text;
using sw::test::temporary_directory;
using sw::test::write_file_text;

namespace {

void make_socket(const std::string& path) {
  const int made = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  REQUIRE(path.size() < sizeof address.sun_path);
  std::memcpy(address.sun_path, path.c_str(), path.size());
  REQUIRE(::bind(made, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  ::close(made);
}

constexpr io::open_mode writing[] = {io::open_mode::overwrite, io::open_mode::append};

}  // namespace

TEST_CASE("opening a pipe, a device or a socket fails at once, for reading and for writing", "[io][file_system]") {
  const temporary_directory directory;
  REQUIRE(::mkfifo((directory / "pipe").c_str(), 0666) == 0);
  make_socket(directory / "socket");
  const std::string which = GENERATE("pipe", "socket", "/dev/null", "/dev/zero");
  const auto path = which.front() == '/' ? which : directory / which;
  for (const auto mode : {io::open_mode::read, io::open_mode::overwrite, io::open_mode::append}) {
    const auto refused = io::posix_file_system()->open(path, mode);
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().code == sw::errc::invalid_argument);
    CHECK(refused.error().place == path);
    CHECK(refused.error().message.find("not a regular file") != std::string::npos);
  }
}

TEST_CASE("opening a directory fails at once and says that it is one", "[io][file_system]") {
  const temporary_directory directory;
  for (const auto mode : {io::open_mode::read, io::open_mode::overwrite, io::open_mode::append}) {
    const auto refused = io::posix_file_system()->open(directory.path(), mode);
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().code == sw::errc::invalid_argument);
    CHECK(refused.error().message.find("this is a directory") != std::string::npos);
  }
}

TEST_CASE("a file is never written through a symbolic link, and what the link points to stays as it is", "[io][file_system]") {
  const temporary_directory directory;
  write_file_text(directory / "thesis", "two years of work");
  std::filesystem::create_symlink(directory / "thesis", directory / "link");
  for (const auto mode : writing) {
    const auto refused = io::posix_file_system()->open(directory / "link", mode);
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().code == sw::errc::invalid_argument);
    CHECK(refused.error().message.find("symbolic link") != std::string::npos);
  }
  CHECK(io::posix_file_system()->open(directory / "link", io::open_mode::create_new).error().code == sw::errc::already_exists);
  CHECK(file_text(directory / "thesis") == "two years of work");
}

TEST_CASE("a file is read through a symbolic link", "[io][file_system]") {
  const temporary_directory directory;
  write_file_text(directory / "data", "bytes");
  std::filesystem::create_symlink(directory / "data", directory / "link");
  CHECK(io::posix_file_system()->open(directory / "link", io::open_mode::read).ok());
}

TEST_CASE("publishing a file replaces a symbolic link of its name, not what that points to", "[io][atomic_file]") {
  const temporary_directory directory;
  write_file_text(directory / "thesis", "two years of work");
  std::filesystem::create_symlink(directory / "thesis", directory / "checkpoint");
  CHECK(io::write_file_atomically(*io::posix_file_system(), directory / "checkpoint", std::string_view("state")).ok());
  CHECK(file_text(directory / "checkpoint") == "state");
  CHECK(file_text(directory / "thesis") == "two years of work");
}
