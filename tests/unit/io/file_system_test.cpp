// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"
#include "support/temporary_directory.hpp"

#include <stepwell/base/detail/platform.hpp>
#include <stepwell/io/detail/posix_file.hpp>
#include <stepwell/io/file_system.hpp>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sw = stepwell;
namespace io = stepwell::io;
using stepwell::test::temporary_directory;

namespace {

std::span<const std::byte> bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

std::string content(io::file& source) {
  std::array<char, 100> buffer{};
  const auto count = source.read_at(0, std::as_writable_bytes(std::span(buffer)));
  REQUIRE(count.ok());
  return {buffer.data(), *count};
}

/// Writes `text` at offset 0 while files are limited to `limit` bytes.
sw::result<void> write_limited_to(::rlim_t limit, io::file& target, const std::string& text) {
  ::rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  const auto signal_before = std::signal(SIGXFSZ, SIG_IGN);
  const ::rlimit limited{limit, before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &limited) == 0);
  auto written = target.write_at(0, bytes(text));
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, signal_before);
  return written;
}

const auto files = io::posix_file_system();

}  // namespace

TEST_CASE("bytes are read back from where they were written", "[io][file]") {
  const temporary_directory directory;
  auto opened = files->open(directory / "a", io::open_mode::create_new);
  REQUIRE(opened.ok());
  io::file& file = **opened;
  CHECK(file.path() == directory / "a");
  CHECK(file.write_at(0, bytes("hello world")).ok());
  CHECK(file.write_at(6, bytes("there")).ok());
  CHECK(content(file) == "hello there");
  CHECK(*file.size() == 11);
  CHECK(file.truncate(5).ok());
  CHECK(content(file) == "hello");
  CHECK(file.sync().ok());
  CHECK(file.close().ok());
  CHECK(file.close().ok());
}

TEST_CASE("a gap before a write reads as zeros, and a read past the end gives fewer bytes", "[io][file]") {
  const temporary_directory directory;
  auto opened = files->open(directory / "a", io::open_mode::overwrite);
  REQUIRE(opened.ok());
  CHECK((*opened)->write_at(3, bytes("x")).ok());
  CHECK(content(**opened) == std::string("\0\0\0x", 4));
  std::array<std::byte, 4> buffer{};
  CHECK(*(*opened)->read_at(2, buffer) == 2);
  CHECK(*(*opened)->read_at(100, buffer) == 0);
}

TEST_CASE("each open mode does what it says to a file that is there, and to one that is not", "[io][file_system]") {
  const temporary_directory directory;
  const auto path = directory / "a";
  CHECK(files->open(path, io::open_mode::read).error().code == sw::errc::not_found);
  {
    auto made = files->open(path, io::open_mode::create_new);
    REQUIRE(made.ok());
    CHECK((*made)->write_at(0, bytes("first")).ok());
  }
  const auto again = files->open(path, io::open_mode::create_new);
  REQUIRE_FALSE(again.ok());
  CHECK(again.error().code == sw::errc::already_exists);
  CHECK(again.error().place == path);
  {
    auto added = files->open(path, io::open_mode::append);
    REQUIRE(added.ok());
    CHECK((*added)->write_at(*(*added)->size(), bytes(" more")).ok());
    CHECK(content(**added) == "first more");
  }
  auto reading = files->open(path, io::open_mode::read);
  REQUIRE(reading.ok());
  CHECK_FALSE((*reading)->write_at(0, bytes("x")).ok());
  CHECK(*(*files->open(path, io::open_mode::overwrite))->size() == 0);
}

TEST_CASE("directories are made with those above them, and listed in order", "[io][file_system]") {
  const temporary_directory directory;
  CHECK(files->create_directories(directory / "x//y/z/").ok());
  CHECK(files->create_directories(directory / "x/y").ok());
  CHECK(files->stat(directory / "x/y/z")->is_directory);
  for (const auto* name : {"c", "a", "b"}) { CHECK(files->open(directory / name, io::open_mode::create_new).ok()); }
  CHECK(*files->list(directory.path()) == std::vector<std::string>{"a", "b", "c", "x"});
  CHECK(files->list(directory / "nothing").error().code == sw::errc::not_found);
  CHECK(files->sync_directory(directory.path()).ok());
  CHECK(files->sync_directory(directory / "nothing").error().code == sw::errc::not_found);
}

TEST_CASE("a directory cannot be made where a file is", "[io][file_system]") {
  const temporary_directory directory;
  CHECK(files->open(directory / "a", io::open_mode::create_new).ok());
  CHECK(files->create_directories(directory / "a").error().code == sw::errc::already_exists);
  const auto below = files->create_directories(directory / "a/b");
  REQUIRE_FALSE(below.ok());
  CHECK(below.error().place == directory / "a");
}

TEST_CASE("a rename replaces, and a removed file is gone", "[io][file_system]") {
  const temporary_directory directory;
  CHECK((*files->open(directory / "a", io::open_mode::create_new))->write_at(0, bytes("new")).ok());
  CHECK((*files->open(directory / "b", io::open_mode::create_new))->write_at(0, bytes("old")).ok());
  CHECK(files->rename(directory / "a", directory / "b").ok());
  CHECK_FALSE(*files->exists(directory / "a"));
  CHECK(content(**files->open(directory / "b", io::open_mode::read)) == "new");
  CHECK(files->remove(directory / "b").ok());
  CHECK_FALSE(*files->exists(directory / "b"));
  const auto gone = files->remove(directory / "b");
  REQUIRE_FALSE(gone.ok());
  CHECK(gone.error().to_string() == (directory / "b") +
                                        ": could not remove it: No such file or directory; check the "
                                        "spelling, and that neither the file nor its directory was removed (not_found)");
}

TEST_CASE("the status of a file has its size and the time of its last change", "[io][file_system]") {
  const temporary_directory directory;
  CHECK((*files->open(directory / "a", io::open_mode::create_new))->write_at(0, bytes("12345")).ok());
  const auto about = files->stat(directory / "a");
  REQUIRE(about.ok());
  CHECK(about->size == 5);
  CHECK_FALSE(about->is_directory);
  CHECK(about->modified > sw::clock::wall_time(std::chrono::seconds(1'500'000'000)));
  CHECK(files->stat(directory / "b").error().code == sw::errc::not_found);
}

TEST_CASE("two names of one directory have the same canonical path", "[io][file_system]") {
  const temporary_directory directory;
  CHECK(files->create_directories(directory / "run").ok());
  std::filesystem::create_symlink(directory / "run", directory / "link");
  CHECK(*files->canonical(directory / "link") == *files->canonical(directory / "run/../run/."));
  CHECK(files->canonical(directory / "nothing").error().code == sw::errc::not_found);
}

TEST_CASE("a full disk is reported with the operation that failed", "[io][file]") {
  const int descriptor = ::open("/dev/full", O_RDWR | O_CLOEXEC);
  if (descriptor < 0) {
    WARN("skipped: /dev/full cannot be opened here");
    return;
  }
  const auto full = io::file_of_descriptor("/dev/full", descriptor);
  const auto written = full->write_at(0, bytes("x"));
  REQUIRE_FALSE(written.ok());
  CHECK(written.error().code == sw::errc::resource_exhausted);
  CHECK(written.error().message.find("could not write 1 bytes at offset 0") == 0);
  CHECK(written.error().message.find("free some space") != std::string::npos);
}

TEST_CASE("a partial write of the system is continued with the rest, until a write fails", "[io][file]") {
  const temporary_directory directory;
  auto opened = files->open(directory / "a", io::open_mode::create_new);
  REQUIRE(opened.ok());
  const auto written = write_limited_to(60, **opened, std::string(100, 'x'));
  REQUIRE_FALSE(written.ok());
  CHECK(written.error().message.find("could not write 100 bytes at offset 0 (60 written): File too large") == 0);
  CHECK(*(*opened)->size() == 60);
}

TEST_CASE("a call that a signal interrupts is made again", "[io][file]") {
  int calls = 0;
  CHECK(io::retry_on_signal([&] {
          errno = calls == 2 ? EIO : EINTR;
          ++calls;
          return -1;
        }) == -1);
  CHECK(calls == 3);
  CHECK(io::retry_on_signal([&] {
          errno = EINTR;
          return ++calls == 5 ? 7 : -1;
        }) == 7);
}

TEST_CASE("a directory that must not be written refuses new files", "[io][file_system]") {
  if (::geteuid() == 0) {
    WARN("skipped: root may write everywhere");
    return;
  }
  const temporary_directory directory;
  CHECK(files->create_directories(directory / "closed").ok());
  std::filesystem::permissions(directory / "closed", std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
  CHECK(files->open(directory / "closed/a", io::open_mode::create_new).error().code == sw::errc::permission_denied);
}

TEST_CASE("D-28 bytes written past the cache are read back from where they were written, wherever pages begin and end", "[io][file]") {
  const temporary_directory directory;
  auto opened = files->open(directory / "a", io::open_mode::create_new);
  REQUIRE(opened.ok());
  io::file& file = **opened;
  std::string expected(10'000'000, '\0');
  for (std::size_t i = 0; i < expected.size(); ++i) { expected[i] = static_cast<char>('a' + i / 7 % 26); }
  std::uint64_t at = 0;
  const auto write = [&](std::size_t count) {
    REQUIRE(file.write_at(at, bytes(std::string_view(expected).substr(at, count))).ok());
    at += count;
  };
  write(5000);
  file.bypass_cache();
  for (const auto count : std::initializer_list<std::size_t>{3192, 4096, 1, 4095, 100, 9'000'000, 8192, 4097, 12'288}) { write(count); }
  write(expected.size() - at);
  CHECK(file.sync().ok());

  std::string found(expected.size() + 1, '\0');
  CHECK(*file.read_at(0, std::as_writable_bytes(std::span(found))) == expected.size());
  found.pop_back();
  CHECK(found == expected);
  CHECK(file.write_at(4090, bytes(std::string(5000, '!'))).ok());  // overwrites existing pages
  CHECK(*file.read_at(0, std::as_writable_bytes(std::span(found))) == expected.size());
  CHECK(found == expected.replace(4090, 5000, 5000, '!'));
  CHECK(file.close().ok());
}

TEST_CASE("past the cache, too, a write that is refused says how far it came", "[io][file]") {
  const temporary_directory directory;
  auto opened = files->open(directory / "a", io::open_mode::create_new);
  REQUIRE(opened.ok());
  (*opened)->bypass_cache();
  const auto written = write_limited_to(8192, **opened, std::string(20'000, 'x'));
  REQUIRE_FALSE(written.ok());
  CHECK(written.error().message.find("could not write 20000 bytes at offset 0 (8192 written): File too large") == 0);
  CHECK(*(*opened)->size() == 8192);
}

namespace {

/// Memory of whole pages.
struct page_memory {
  explicit page_memory(std::size_t pages)
      : first(static_cast<char*>(std::aligned_alloc(io::page_size, pages * io::page_size)), &std::free), size(pages * io::page_size) {
    std::memset(first.get(), '!', size);
  }
  [[nodiscard]] std::span<std::byte> part(std::size_t at, std::size_t count) const {
    return std::as_writable_bytes(std::span(first.get(), size)).subspan(at, count);
  }
  std::unique_ptr<char[], void (*)(void*)> first;
  std::size_t size;
};

/// Writes a synced file of some pages and 100 bytes. Returns its content.
std::string write_pages(const std::string& path) {
  std::string content;
  for (std::size_t i = 0; i < 40 * io::page_size + 100; ++i) { content.push_back(static_cast<char>(i * 7919 >> 5)); }
  auto made = files->open(path, io::open_mode::create_new);
  REQUIRE(made.ok());
  REQUIRE((*made)->write_at(0, bytes(content)).ok());
  REQUIRE((*made)->sync().ok());
  return content;
}

}  // namespace

TEST_CASE("D-28 bytes read past the cache are those of the file, wherever a read begins and ends", "[io][file]") {
  const temporary_directory directory;
  const auto expected = write_pages(directory / "a");
  const auto opened = files->open(directory / "a", io::open_mode::read);
  REQUIRE(opened.ok());
  const page_memory memory(64);
  struct request {
    std::size_t offset, into, size;
  };
  for (const auto& [offset, into, size] : std::initializer_list<request>{{0, 0, 4096},
                                                                         {4096, 8192, 3 * 4096},
                                                                         {0, 0, 48 * 4096},     // more than the file has
                                                                         {40 * 4096, 0, 4096},  // the last page is not complete
                                                                         {41 * 4096, 0, 4096},  // behind the end
                                                                         {5, 0, 9000},
                                                                         {4096, 16, 8192},  // memory that is not aligned
                                                                         {4096, 4096, 5000}}) {
    CAPTURE(offset, into, size);
    const auto target = memory.part(into, size);
    const auto count = (*opened)->read_uncached(offset, target);
    REQUIRE(count.ok());
    const auto wanted = offset < expected.size() ? expected.substr(offset, size) : std::string();
    REQUIRE(*count == wanted.size());
    CHECK(std::memcmp(target.data(), wanted.data(), *count) == 0);
  }
  CHECK((*opened)->close().ok());
}

TEST_CASE("D-28 a read past the cache shows bytes that were written through the cache and are not synced", "[io][file]") {
  const temporary_directory directory;
  write_pages(directory / "a");
  const auto opened = files->open(directory / "a", io::open_mode::append);
  REQUIRE(opened.ok());
  const std::string fresh(2 * io::page_size, 'x');
  REQUIRE((*opened)->write_at(io::page_size, bytes(fresh)).ok());
  const page_memory memory(2);
  CHECK(*(*opened)->read_uncached(io::page_size, memory.part(0, memory.size)) == fresh.size());
  CHECK(std::string_view(memory.first.get(), memory.size) == fresh);
}

TEST_CASE("a file is in the cache after it was read, and not after it was dropped from there", "[io][file]") {
  const temporary_directory directory;
  const auto expected = write_pages(directory / "a");
  const auto opened = files->open(directory / "a", io::open_mode::read);
  REQUIRE(opened.ok());
  const page_memory memory(64);
  const auto read = [&] { return (*opened)->read_at(0, memory.part(0, memory.size)).ok(); };
  CHECK(read());
  CHECK((*opened)->is_cached(0, expected.size()));
  CHECK((*opened)->is_cached(12'345, 1));
  CHECK((*opened)->is_cached(0, 0));

  const int descriptor = ::open((directory / "a").c_str(), O_RDONLY | O_CLOEXEC);
  struct ::statfs about{};
  REQUIRE(::fstatfs(descriptor, &about) == 0);
  const bool is_on_disk = about.f_type == 0xEF53 || about.f_type == 0x58465342;  // ext4 or xfs; other file systems may keep the pages
  CHECK(::posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED) == 0);
  ::close(descriptor);
  if (is_on_disk && !sw::detail::platform::is_portable()) {
    CHECK_FALSE((*opened)->is_cached(0, expected.size()));
    CHECK(*(*opened)->read_uncached(0, memory.part(0, memory.size)) == expected.size());
    CHECK_FALSE((*opened)->is_cached(0, 40 * io::page_size));  // the read left the cache as it was
  }
  CHECK(read());
  CHECK((*opened)->is_cached(0, expected.size()));
}
