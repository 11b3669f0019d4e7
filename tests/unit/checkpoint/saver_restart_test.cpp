// SPDX-License-Identifier: Apache-2.0
//
// Tests of a saver that continues in a directory after a kill: every view of the directory names the newest complete
// checkpoint.
#include <stepwell/checkpoint/saver.hpp>

#include "support/catch.hpp"
#include "support/file_text.hpp"
#include "support/leaping_clock.hpp"
#include "support/log_capture.hpp"
#include "support/saver_rig.hpp"

#include <stepwell/base/error.hpp>
#include <stepwell/checkpoint/detail/checkpoint_writer.hpp>
#include <stepwell/checkpoint/find_checkpoints.hpp>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <regex>
#include <string>
#include <vector>

namespace sw = stepwell;
using sw::test::file_text;
using sw::test::operation;
using sw::test::save_and_settle;
using sw::test::toy_at;
using sw::test::toy_in;
using sw::test::toy_snapshot;
using sw::test::workshop;
using sw::test::write_file_text;
using namespace std::chrono_literals;

namespace {

void save(const workshop& shop, const sw::saver_options& options, const std::vector<std::int64_t>& steps) {
  auto saver = shop.make(options);
  for (const auto step : steps) { save_and_settle(saver, toy_snapshot(step)); }
}

/// Saves `step` and fails between the index and the state file, like a process that is killed there.
void save_unlisted(const workshop& shop, const sw::saver_options& options, std::int64_t step) {
  auto saver = shop.make(options);
  shop.files->inject({.kind = operation::rename, .path_contains = "/checkpoint", .errno_value = EIO});
  CHECK_THROWS_AS(saver.save_and_wait(toy_snapshot(step)), sw::error);
}

void damage(const std::string& file) {
  auto bytes = file_text(file);
  bytes[5] = static_cast<char>(~bytes[5]);
  write_file_text(file, bytes);
}

/// Returns the newest checkpoint of the state file, which is read without the library.
std::string newest_in_state_file(const workshop& shop) {
  const auto text = file_text(shop.directory / "checkpoint");
  std::smatch found;
  return std::regex_search(text, found, std::regex("(^|\n)model_checkpoint_path: \"([^\"]*)\"")) ? found[2].str() : "";
}

/// Returns the steps that the state file lists, which is read without the library: "1 2".
std::string listed_in_state_file(const workshop& shop) {
  const auto text = file_text(shop.directory / "checkpoint");
  const std::regex line("all_model_checkpoint_paths: \"model.ckpt-([0-9]+)\"");
  std::string steps;
  for (std::sregex_iterator found(text.begin(), text.end(), line), end; found != end; ++found) {
    steps += (steps.empty() ? "" : " ") + (*found)[1].str();
  }
  return steps;
}

/// Returns the newest checkpoint if all views of the directory agree, otherwise "they differ".
std::string newest_in_all_views(const workshop& shop) {
  const auto named = newest_in_state_file(shop);
  const auto latest = sw::latest_checkpoint(shop.directory.path());
  const auto whole = sw::latest_whole_checkpoint(shop.directory.path());
  const auto path = shop.directory / named;
  return latest == path && whole && whole->prefix() == path ? named : "they differ";
}

}  // namespace

TEST_CASE("a checkpoint whose save was killed before the state file is listed at the next start", "[checkpoint][saver]") {
  workshop shop;
  const sw::saver_options options{.max_to_keep = 2};
  save(shop, options, {1, 2});
  save_unlisted(shop, options, 3);
  REQUIRE(newest_in_state_file(shop) == "model.ckpt-2");
  {
    auto saver = shop.make(options);
    SECTION("and restored") { CHECK(saver.restore_newest()->step() == 3); }
    SECTION("by a session that restores something else") {}
    CHECK(newest_in_all_views(shop) == "model.ckpt-3");
  }
  CHECK(newest_in_all_views(shop) == "model.ckpt-3");
  CHECK(shop.steps() == "2 3");  // the retention is applied although nothing was saved
}

TEST_CASE("the first checkpoint of a directory is listed when it is restored, killed before the state file", "[checkpoint][saver]") {
  workshop shop;
  save_unlisted(shop, {}, 1);
  REQUIRE_FALSE(std::filesystem::exists(shop.directory / "checkpoint"));
  CHECK(shop.make().restore_newest()->step() == 1);
  CHECK(newest_in_all_views(shop) == "model.ckpt-1");
}

TEST_CASE("an unlisted checkpoint that is damaged is not listed", "[checkpoint][saver]") {
  workshop shop;
  sw::test::log_capture log;
  save(shop, {}, {1, 2});
  save_unlisted(shop, {}, 3);
  damage(shop.directory / "model.ckpt-3.data-00000-of-00001");
  {
    auto saver = shop.make();
    CHECK(newest_in_all_views(shop) == "model.ckpt-2");
    CHECK(saver.restore_newest()->step() == 2);
  }
  CHECK(newest_in_all_views(shop) == "model.ckpt-2");
  CHECK(shop.steps() == "1 2 3");
}

TEST_CASE("D-4 after a restore past a damaged checkpoint, the state file names the one restored", "[checkpoint][saver]") {
  workshop shop;
  sw::test::log_capture log;
  save(shop, {}, {1, 2, 3});
  SECTION("with damaged data") { damage(shop.directory / "model.ckpt-3.data-00000-of-00001"); }
  SECTION("with a damaged index") { damage(shop.directory / "model.ckpt-3.index"); }
  SECTION("without its index") { std::filesystem::remove(shop.directory / "model.ckpt-3.index"); }
  CHECK(shop.make().restore_newest()->step() == 2);
  CHECK(newest_in_all_views(shop) == "model.ckpt-2");
}

TEST_CASE("a checkpoint restored from beyond the list is listed, and not deleted by this saver", "[checkpoint][saver]") {
  workshop shop;
  sw::test::log_capture log;
  save(shop, {}, {1, 2});
  std::filesystem::remove(shop.directory / "checkpoint");
  save(shop, {}, {3});
  damage(shop.directory / "model.ckpt-3.data-00000-of-00001");
  auto saver = shop.make({.max_to_keep = 1});
  CHECK(saver.restore_newest()->step() == 2);
  CHECK(newest_in_all_views(shop) == "model.ckpt-2");
  CHECK(saver.checkpoints() == std::vector<std::string>{shop.directory / "model.ckpt-2"});
  save_and_settle(saver, toy_snapshot(4));
  CHECK(shop.steps() == "1 2 3 4");
}

TEST_CASE("a state file that cannot be written at the start is a warning, and the next save lists all", "[checkpoint][saver]") {
  workshop shop;
  sw::test::log_capture log;
  save(shop, {}, {1});
  save_unlisted(shop, {}, 2);
  shop.files->inject({.kind = operation::rename, .path_contains = "/checkpoint", .errno_value = ENOSPC});
  shop.files->inject({.kind = operation::rename, .path_contains = "/checkpoint", .errno_value = ENOSPC});
  auto saver = shop.make();
  CHECK(saver.restore_newest()->step() == 2);
  CHECK(log.contains(sw::log_level::warning, "model.ckpt-2"));
  save_and_settle(saver, toy_snapshot(3));
  CHECK(saver.checkpoints() ==
        std::vector<std::string>{shop.directory / "model.ckpt-1", shop.directory / "model.ckpt-2", shop.directory / "model.ckpt-3"});
  CHECK(newest_in_all_views(shop) == "model.ckpt-3");
}

TEST_CASE("the number of a save decides which unlisted checkpoint is newer, whatever times the files have", "[checkpoint][saver]") {
  workshop shop;
  const auto index_of = [&](int step) { return shop.directory / "model.ckpt-" + std::to_string(step) + ".index"; };
  const auto set_time = [](const std::string& file, std::chrono::hours from_now) {
    std::filesystem::last_write_time(file, std::filesystem::file_time_type::clock::now() + from_now);
  };
  SECTION("a clock that was set back does not hide the newest") {
    save(shop, {}, {1});
    save_unlisted(shop, {}, 2);
    set_time(index_of(2), -24h);
    CHECK(shop.make().restore_newest()->step() == 2);
  }
  SECTION("a copy that gave new times does not bring back one that training was rolled back from") {
    auto saver = shop.make({.max_to_keep = 1, .keep_every_n_hours = 1});
    shop.clock->advance(2h);
    for (const std::int64_t step : {300, 250}) { save_and_settle(saver, toy_snapshot(step)); }
    saver.close();
    REQUIRE(shop.steps() == "250 300");  // 300 is kept permanently and is not listed
    set_time(index_of(300), 24h);
    CHECK(shop.make().restore_newest()->step() == 250);
    CHECK(newest_in_all_views(shop) == "model.ckpt-250");
  }
  SECTION("one saved at a lower step after a rollback is the newest, also across processes and without a state file") {
    save(shop, {}, {300});
    save(shop, {}, {250});
    std::filesystem::remove(shop.directory / "checkpoint");
    CHECK(shop.make().restore_newest()->step() == 250);
  }
  SECTION("a killed save after a rollback is the newest") {
    save(shop, {}, {300});
    save_unlisted(shop, {}, 250);
    CHECK(shop.make().restore_newest()->step() == 250);
  }
}

TEST_CASE("checkpoints without a number, such as TensorFlow's, are ordered by step", "[checkpoint][saver]") {
  workshop shop;
  const auto write_foreign = [&](std::int64_t step) {
    sw::detail::checkpoint_writer writer(shop.directory / "model.ckpt-" + std::to_string(step));
    auto toy = toy_at(step);
    for (const auto& variable : toy.list()) { writer.add(variable.name(), {variable.dtype(), variable.shape(), variable.bytes()}); }
    writer.commit();
    std::filesystem::last_write_time(shop.directory / "model.ckpt-" + std::to_string(step) + ".index",
                                     std::filesystem::file_time_type::clock::now() - 24h);
  };
  write_foreign(100);
  write_foreign(200);
  write_file_text(shop.directory / "checkpoint", "model_checkpoint_path: \"model.ckpt-100\"");
  CHECK(toy_in(*shop.make().restore_newest()) == toy_at(200));
  save(shop, {}, {300});
  write_foreign(250);
  CHECK(toy_in(*shop.make().restore_newest()) == toy_at(300));
  write_foreign(400);
  CHECK(toy_in(*shop.make().restore_newest()) == toy_at(400));
}

TEST_CASE("a save number out of range counts as none, and does not stop saving", "[checkpoint][saver]") {
  workshop shop;
  for (const std::int64_t number : {std::int64_t{-1}, std::int64_t{0}, std::numeric_limits<std::int64_t>::max()}) {
    const std::int64_t step = 500;
    sw::detail::checkpoint_writer writer(shop.directory / "model.ckpt-500");
    writer.add("global_step", sw::view_of(step));
    writer.add("stepwell/save_number", sw::view_of(number));
    writer.commit();
    save(shop, {}, {600});
    CHECK(sw::checkpoint_reader(shop.directory / "model.ckpt-600").read("stepwell/save_number").as<std::int64_t>().front() >= 1);
    CHECK(shop.make().restore_newest()->step() == 600);
  }
}

TEST_CASE("save numbers increase over savers and rollbacks, and stand in the checkpoints", "[checkpoint][saver]") {
  workshop shop;
  const auto number_of = [&](std::int64_t step) {
    const sw::checkpoint_reader reader(shop.directory / "model.ckpt-" + std::to_string(step));
    return reader.contains("stepwell/save_number") ? reader.read("stepwell/save_number").as<std::int64_t>().front() : -1;
  };
  save(shop, {}, {10, 20});
  save(shop, {}, {5});
  CHECK(std::vector{number_of(10), number_of(20), number_of(5)} == std::vector<std::int64_t>{1, 2, 3});
  std::filesystem::remove(shop.directory / "checkpoint");
  save(shop, {}, {7});
  CHECK(number_of(7) == 4);
}

TEST_CASE("STATE-7, D-13 after the clock was set back, one every so many hours is kept as before, and all older ones",
          "[checkpoint][saver]") {
  workshop shop;
  sw::test::log_capture log;
  const auto time = std::make_shared<sw::test::leaping_clock>();
  const auto set_hour = [&](int hour) { time->time = sw::clock::time_point(hour * 1h); };
  auto options = shop.with({.max_to_keep = 1, .keep_every_n_hours = 2});
  options.clock = time;
  const auto save_hourly = [&](sw::saver& saver) {
    for (const int hour : {11, 12, 13, 14, 15}) {
      set_hour(hour);
      save_and_settle(saver, toy_snapshot(hour));
    }
  };
  set_hour(1000);
  {
    sw::saver saver(shop.directory.path(), options);
    for (const std::int64_t step : {1, 2}) { save_and_settle(saver, toy_snapshot(step)); }
    REQUIRE(shop.steps() == "2");
  }
  SECTION("found by the next saver") {
    set_hour(10);
    sw::saver saver(shop.directory.path(), options);
    save_hourly(saver);
    CHECK(shop.steps() == "2 12 14 15");
  }
  SECTION("while a saver lives") {
    sw::saver saver(shop.directory.path(), options);
    save_hourly(saver);
    CHECK(shop.steps() == "2 13 15");
  }
  CHECK(log.contains(sw::log_level::warning, "clock"));
}

TEST_CASE("after a kill inside retention, the next start lists only checkpoints that are there, also if it saves nothing",
          "[checkpoint][saver]") {
  const sw::saver_options options{.max_to_keep = 2};
  for (std::uint64_t number = 1;; ++number) {
    workshop shop;
    save(shop, {}, {1, 2, 3, 4});
    {
      auto saver = shop.make(options);
      const auto saved = shop.files->operations();
      shop.files->crash_at(saved + number);
      try {
        save_and_settle(saver, toy_snapshot(5));
      } catch (const sw::error&) {}  // NOLINT(bugprone-empty-catch): the machine has stopped
    }
    if (!shop.files->has_crashed()) { break; }
    shop.files = sw::test::fast_faulty_files();
    shop.make(options).close();
    INFO("stopped at operation " << number);
    CHECK(listed_in_state_file(shop) == shop.steps());
  }
}
