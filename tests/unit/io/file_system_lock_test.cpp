// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"
#include "support/file_text.hpp"
#include "support/temporary_directory.hpp"

#include <stepwell/io/detail/read_file.hpp>
#include <stepwell/io/file_system.hpp>

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

namespace sw = stepwell;
namespace io = stepwell::io;
using sw::test::file_text;
using sw::test::temporary_directory;
using sw::test::write_file_text;

namespace {

/// A lock that this process holds.
struct held_lock {
  temporary_directory directory;
  std::string path = directory / "lock";
  std::shared_ptr<io::file_system> files = io::posix_file_system();
  std::unique_ptr<io::file_lock> held = std::move(files->lock(path)).value();
};

}  // namespace

TEST_CASE("a lock held in this process is refused, naming this process and what releases the lock", "[io][file_lock]") {
  const temporary_directory directory;
  const auto files = io::posix_file_system();
  auto held = files->lock(directory / "lock");
  REQUIRE(held.ok());
  const auto second = files->lock(directory / "lock");
  REQUIRE_FALSE(second.ok());
  CHECK(second.error().code == sw::errc::failed_precondition);
  CHECK(second.error().place == directory / "lock");
  CHECK(second.error().message.find("process " + std::to_string(::getpid()) + " on host ") != std::string::npos);
  CHECK(second.error().message.find("since 20") != std::string::npos);
  CHECK(second.error().message.find("locked by this process (process ") != std::string::npos);
  CHECK(second.error().message.find("close the other session or writer first; if it is an awaited session") != std::string::npos);
  CHECK(second.error().message.find("stop that process") == std::string::npos);
}

TEST_CASE("a lock can be taken again after its release, and then names no process", "[io][file_lock]") {
  const temporary_directory directory;
  const auto files = io::posix_file_system();
  { CHECK(files->lock(directory / "lock").ok()); }
  CHECK(io::read_text_file(*files, directory / "lock", 100)->empty());
  CHECK(files->lock(directory / "lock").ok());
}

TEST_CASE("a lock is let go by a process that is killed", "[io][file_lock]") {
  const temporary_directory directory;
  const auto files = io::posix_file_system();
  int ready[2];
  REQUIRE(::pipe(ready) == 0);
  const auto child = ::fork();
  if (child == 0) {
    const auto held = files->lock(directory / "lock");
    const char outcome = held.ok() ? 'y' : 'n';
    static_cast<void>(::write(ready[1], &outcome, 1));
    ::pause();
    ::_exit(0);
  }
  char outcome = 0;
  REQUIRE(::read(ready[0], &outcome, 1) == 1);
  CHECK(outcome == 'y');
  const auto refused = files->lock(directory / "lock");
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().message.find("process " + std::to_string(child)) != std::string::npos);
  CHECK(refused.error().message.find("this process") == std::string::npos);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  CHECK(files->lock(directory / "lock").ok());
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST_CASE("a lock file with a part of the line of a holder is taken over: a loss of power has cut it", "[io][file_lock]") {
  const std::string line = "process 3131 on host a.b since 2026-11-25T23:59:48Z";
  const auto files = io::posix_file_system();
  for (std::size_t length = 0; length <= line.size(); ++length) {
    for (const std::size_t zeros : {0U, 3U}) {
      const temporary_directory directory;
      write_file_text(directory / "lock", line.substr(0, length) + std::string(zeros, '\0'));
      INFO(line.substr(0, length));
      CHECK(files->lock(directory / "lock").ok());
    }
  }
}

TEST_CASE("a lock is released although a child process still has its file open", "[io][file_lock]") {
  held_lock parent;
  REQUIRE(parent.held);
  const auto child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  parent.held.reset();
  CHECK(parent.files->lock(parent.path).ok());
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

TEST_CASE("a child process that destroys its copy of a lock does not release the lock of its parent", "[io][file_lock]") {
  held_lock parent;
  REQUIRE(parent.held);
  const auto child = ::fork();
  if (child == 0) {
    parent.held.reset();
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
  const auto refused = parent.files->lock(parent.path);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().message.find("process " + std::to_string(::getpid())) != std::string::npos);
}

TEST_CASE("a lock in a directory that is not there is an error about the path", "[io][file_lock]") {
  CHECK(io::posix_file_system()->lock("/nowhere/lock").error().code == sw::errc::not_found);
}

TEST_CASE("a lock knows whether its file is still at its path", "[io][file_lock]") {
  const temporary_directory directory;
  const auto files = io::posix_file_system();
  const auto held = std::move(files->lock(directory / "lock")).value();
  CHECK(held->is_at(directory / "lock"));
  CHECK(files->rename(directory / "lock", directory / "moved").ok());
  CHECK_FALSE(held->is_at(directory / "lock"));
  const auto other = std::move(files->lock(directory / "lock")).value();
  CHECK_FALSE(held->is_at(directory / "lock"));
  CHECK(held->is_at(directory / "moved"));
}

TEST_CASE("a lock file that is a symbolic link is refused, and the file it points to stays as it is", "[io][file_lock]") {
  const temporary_directory directory;
  write_file_text(directory / "thesis", "two years of work");
  std::filesystem::create_symlink(directory / "thesis", directory / "lock");
  const auto refused = io::posix_file_system()->lock(directory / "lock");
  CHECK(file_text(directory / "thesis") == "two years of work");
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().code == sw::errc::invalid_argument);
  CHECK(refused.error().place == directory / "lock");
  CHECK(refused.error().message.find("symbolic link") != std::string::npos);
  CHECK(refused.error().message.find("remove the link") != std::string::npos);
}

TEST_CASE("a symbolic link that leads nowhere is no lock file, and nothing is made where it points", "[io][file_lock]") {
  const temporary_directory directory;
  std::filesystem::create_symlink(directory / "nothing", directory / "lock");
  CHECK(io::posix_file_system()->lock(directory / "lock").error().code == sw::errc::invalid_argument);
  CHECK_FALSE(std::filesystem::exists(directory / "nothing"));
}

TEST_CASE("a lock file with content of others is refused and stays as it is, also as a hard link", "[io][file_lock]") {
  const temporary_directory directory;
  const auto* content = GENERATE("two years of work", "process 12 is my own file", "process 12 on host a since yesterday",
                                 "process 12 on host a since 2026-01-02T03:04:05Z and more");
  write_file_text(directory / "thesis", content);
  std::filesystem::create_hard_link(directory / "thesis", directory / "lock");
  const auto refused = io::posix_file_system()->lock(directory / "lock");
  CHECK(file_text(directory / "thesis") == content);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().code == sw::errc::failed_precondition);
  CHECK(refused.error().message.find("move it away") != std::string::npos);
}

TEST_CASE("a lock file that a killed process left is taken over", "[io][file_lock]") {
  const temporary_directory directory;
  write_file_text(directory / "lock", "process 4711 on host elsewhere.example since 2026-01-02T03:04:05Z");
  const auto files = io::posix_file_system();
  const auto held = files->lock(directory / "lock");
  REQUIRE(held.ok());
  CHECK(file_text(directory / "lock").starts_with("process " + std::to_string(::getpid()) + " on host "));
}

TEST_CASE("a lock file in a directory that is reached by a symbolic link is a lock file like any other", "[io][file_lock]") {
  const temporary_directory directory;
  std::filesystem::create_directory(directory / "run");
  std::filesystem::create_symlink(directory / "run", directory / "link");
  CHECK(io::posix_file_system()->lock(directory / "link/lock").ok());
}

TEST_CASE("a pipe, a device or a directory is no lock file", "[io][file_lock]") {
  const temporary_directory directory;
  REQUIRE(::mkfifo((directory / "pipe").c_str(), 0666) == 0);
  std::filesystem::create_directory(directory / "directory");
  CHECK(io::posix_file_system()->lock(directory / "pipe").error().code == sw::errc::invalid_argument);
  CHECK(io::posix_file_system()->lock(directory / "directory").error().code == sw::errc::invalid_argument);
  CHECK(io::posix_file_system()->lock("/dev/null").error().code == sw::errc::invalid_argument);
}
