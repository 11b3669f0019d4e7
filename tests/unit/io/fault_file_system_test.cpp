// SPDX-License-Identifier: Apache-2.0
//
// Tests of the fault_file_system, on which the fault tests depend.
#include "support/fault_file_system.hpp"
#include "support/catch.hpp"
#include "support/temporary_directory.hpp"

#include <stepwell/io/detail/read_file.hpp>

#include <string>
#include <string_view>

namespace sw = stepwell;
namespace io = stepwell::io;
using namespace stepwell::test;

namespace {
std::span<const std::byte> bytes(std::string_view text) { return std::as_bytes(std::span(text)); }
const auto disk = io::posix_file_system();
}  // namespace

TEST_CASE("faults hit the operation they name and no other", "[io][fault]") {
  const temporary_directory directory;
  fault_file_system files;
  files.inject({.kind = operation::write, .path_contains = "/b", .nth = 2, .errno_value = ENOSPC, .bytes_written = 3});
  auto a = files.open(directory / "a", io::open_mode::create_new).value();
  auto b = files.open(directory / "b", io::open_mode::create_new).value();
  CHECK(a->write_at(0, bytes("one")).ok());
  CHECK(b->write_at(0, bytes("one")).ok());
  CHECK(a->write_at(3, bytes("two")).ok());
  const auto failed = b->write_at(3, bytes("second"));
  REQUIRE_FALSE(failed.ok());
  CHECK(failed.error().code == sw::errc::resource_exhausted);
  CHECK(*io::read_text_file(*disk, directory / "b", 100) == "onesec");
  CHECK(b->write_at(3, bytes("x")).ok());
  CHECK(files.operations() == 7);
  CHECK(files.operations(operation::write) == 5);
}

TEST_CASE("a fault from then on stays", "[io][fault]") {
  fault_file_system files;
  files.inject({.kind = operation::stat, .nth = 2, .errno_value = EACCES, .from_then_on = true});
  CHECK(files.stat("/").ok());
  CHECK_FALSE(files.stat("/").ok());
  CHECK_FALSE(files.stat("/").ok());
  CHECK(files.list("/").ok());
}

TEST_CASE("a crash writes half and nothing after", "[io][fault]") {
  const temporary_directory directory;
  fault_file_system files;
  files.crash_at(2);
  auto file = files.open(directory / "a", io::open_mode::create_new).value();
  CHECK_FALSE(file->write_at(0, bytes("123456")).ok());
  CHECK(files.has_crashed());
  CHECK_FALSE(file->write_at(0, bytes("abcdef")).ok());
  CHECK_FALSE(files.remove(directory / "a").ok());
  CHECK(*io::read_text_file(*disk, directory / "a", 100) == "123");
}

TEST_CASE("a loss of power takes what was not synced, also under a new name", "[io][fault]") {
  const temporary_directory directory;
  fault_file_system files;
  files.lose_power_at(6);
  auto file = files.open(directory / "a", io::open_mode::create_new).value();
  CHECK(file->write_at(0, bytes("safe")).ok());
  CHECK(file->sync().ok());
  CHECK(file->write_at(4, bytes("lost")).ok());
  CHECK(files.rename(directory / "a", directory / "b").ok());
  CHECK_FALSE(files.sync_directory(directory.path()).ok());
  CHECK(*io::read_text_file(*disk, directory / "b", 100) == "safe");
}

TEST_CASE("a test can watch, and hold up, each operation", "[io][fault]") {
  fault_file_system files;
  std::vector<std::string> seen;
  files.before_each([&](const event& now) { seen.push_back(now.path); });
  CHECK(files.stat("/").ok());
  CHECK(files.list("/").ok());
  CHECK(seen == std::vector<std::string>{"/", "/"});
}
