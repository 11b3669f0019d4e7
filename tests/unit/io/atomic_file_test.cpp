// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"
#include "support/fault_file_system.hpp"
#include "support/log_capture.hpp"
#include "support/temporary_directory.hpp"

#include <stepwell/io/atomic_file.hpp>
#include <stepwell/io/detail/read_file.hpp>
#include <stepwell/io/file_system.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace sw = stepwell;
namespace io = stepwell::io;
using namespace stepwell::test;

namespace {

const auto disk = io::posix_file_system();

std::span<const std::byte> bytes(std::string_view text) { return std::as_bytes(std::span(text)); }
std::string content(const std::string& path) { return io::read_text_file(*disk, path, 1000).value(); }

/// Returns the number of temporary names in `directory` that a kill left and that a sweep must remove.
std::size_t temporary_names(const temporary_directory& directory) {
  const auto names = disk->list(directory.path()).value();
  return static_cast<std::size_t>(std::ranges::count_if(names, io::is_temporary_name));
}

}  // namespace

TEST_CASE("a file written aside has its name only once it is published", "[io][atomic_file]") {
  const temporary_directory directory;
  auto made = io::atomic_file::create(*disk, directory / "a");
  REQUIRE(made.ok());
  CHECK(made->append(bytes("one ")).ok());
  CHECK(made->append(bytes("two")).ok());
  CHECK(made->size() == 7);
  CHECK_FALSE(*disk->exists(directory / "a"));
  CHECK(io::is_temporary_name(io::base_name(made->temporary_path())));
  CHECK_FALSE(io::is_temporary_name("a"));
  CHECK(io::final_name_of_temporary(io::base_name(made->temporary_path())) == io::base_name(made->final_path()));
  for (const std::string_view other : {"a", ".tmp-", ".tmp-1-2", ".tmp-1-a", ".tmp--2-a"}) {
    CHECK(io::final_name_of_temporary(other).empty());
  }
  CHECK(made->publish().ok());
  CHECK(content(directory / "a") == "one two");
  CHECK(*disk->list(directory.path()) == std::vector<std::string>{"a"});
}

TEST_CASE("a file that is not published leaves nothing behind", "[io][atomic_file]") {
  const temporary_directory directory;
  {
    auto made = io::atomic_file::create(*disk, directory / "a");
    REQUIRE(made.ok());
    CHECK(made->append(bytes("half")).ok());
  }
  {
    auto made = io::atomic_file::create(*disk, directory / "b");
    REQUIRE(made.ok());
    CHECK(made->finish().ok());
  }
  CHECK(disk->list(directory.path())->empty());
}

TEST_CASE("several files are finished first and then given their names", "[io][atomic_file]") {
  const temporary_directory directory;
  std::vector<io::atomic_file> shards;
  for (const auto* name : {"a", "b"}) {
    shards.push_back(io::atomic_file::create(*disk, directory / name).value());
    CHECK(shards.back().append(bytes(name)).ok());
  }
  CHECK(shards[0].rename_into_place().error().code == sw::errc::failed_precondition);
  for (auto& shard : shards) { CHECK(shard.finish().ok()); }
  CHECK(shards[0].append(bytes("more")).error().code == sw::errc::failed_precondition);
  for (auto& shard : shards) { CHECK(shard.rename_into_place().ok()); }
  CHECK(shards[0].rename_into_place().error().code == sw::errc::failed_precondition);
  shards.clear();
  CHECK(*disk->list(directory.path()) == std::vector<std::string>{"a", "b"});
}

TEST_CASE("a name left by a killed process of the same number is passed over", "[io][atomic_file]") {
  const temporary_directory directory;
  fault_file_system files;
  files.inject({.kind = operation::open, .errno_value = EEXIST});
  CHECK(io::write_file_atomically(files, directory / "a", std::string_view("x")).ok());
  CHECK(content(directory / "a") == "x");
}

TEST_CASE("a name of the greatest length can be written", "[io][atomic_file]") {
  const temporary_directory directory;
  const std::string name(255, 'n');
  CHECK(io::write_file_atomically(*disk, directory / name, std::string_view("x")).ok());
}

TEST_CASE("the bytes are synced before the name is given, and the directory after", "[io][atomic_file]") {
  const temporary_directory directory;
  fault_file_system files;
  CHECK(io::write_file_atomically(files, directory / "a", std::string_view("x")).ok());
  std::vector<operation> order;
  for (const auto& entry : files.history()) { order.push_back(entry.kind); }
  CHECK(order ==
        std::vector{operation::open, operation::write, operation::sync, operation::close, operation::rename, operation::sync_directory});
}

TEST_CASE("if any operation fails, the old file stays and no temporary file is left", "[io][atomic_file]") {
  const temporary_directory directory;
  REQUIRE(io::write_file_atomically(*disk, directory / "a", std::string_view("old")).ok());
  for (std::uint64_t number = 1; number <= 5; ++number) {
    fault_file_system files;
    files.inject({.nth = number, .errno_value = ENOSPC, .bytes_written = 2});
    const auto written = io::write_file_atomically(files, directory / "a", std::string_view("newer"));
    REQUIRE_FALSE(written.ok());
    CHECK(written.error().code == sw::errc::resource_exhausted);
    CHECK(content(directory / "a") == "old");
    CHECK(temporary_names(directory) == 0);
  }
}

TEST_CASE("a failed sync is never taken for a success afterwards", "[io][atomic_file]") {
  const temporary_directory directory;
  fault_file_system files;
  files.inject({.kind = operation::sync});
  auto made = io::atomic_file::create(files, directory / "a");
  REQUIRE(made.ok());
  CHECK(made->append(bytes("x")).ok());
  CHECK_FALSE(made->finish().ok());
  CHECK_FALSE(made->finish().ok());
  CHECK_FALSE(made->publish().ok());
  CHECK_FALSE(made->append(bytes("y")).ok());
  CHECK_FALSE(*disk->exists(directory / "a"));
}

TEST_CASE("a crash or loss of power within any operation leaves the old file or the new one, whole", "[io][atomic_file]") {
  const bool loses_power = GENERATE(false, true);
  for (std::uint64_t number = 1; number <= 7; ++number) {
    const temporary_directory directory;
    const log_capture quiet;
    REQUIRE(io::write_file_atomically(*disk, directory / "a", std::string_view("old")).ok());
    fault_file_system files;
    if (loses_power) {
      files.lose_power_at(number);
    } else {
      files.crash_at(number);
    }
    const auto written = io::write_file_atomically(files, directory / "a", std::string_view("new"));
    CHECK(written.ok() == (number > 6));
    CHECK(content(directory / "a") == (number > 5 ? "new" : "old"));
    CHECK(temporary_names(directory) == (number > 1 && number < 6 ? 1 : 0));
  }
}
