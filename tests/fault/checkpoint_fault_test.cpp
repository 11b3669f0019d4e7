// SPDX-License-Identifier: Apache-2.0
//
// Tests of a saver that is killed or loses power at every single operation, and of a checkpoint that is damaged at
// every single bit and cut at every length. A restore must give exactly the saved state or an error.
#include "support/catch.hpp"
#include "support/checkpoint_files.hpp"
#include "support/file_text.hpp"
#include "support/log_capture.hpp"
#include "support/toy_variables.hpp"

#include <stepwell/base/error.hpp>
#include <stepwell/checkpoint/find_checkpoints.hpp>
#include <stepwell/checkpoint/saver.hpp>
#include <stepwell/io/fenced_directory.hpp>

#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace sw = stepwell;
using sw::test::names_in;
using sw::test::steps_in;
using sw::test::temporary_directory;
using sw::test::toy_at;
using sw::test::toy_in;
using sw::test::toy_snapshot;

namespace {

enum class end { crash, power_cut, power_cut_and_names };

/// A step and its saved content: the values of that step, or of another step after a rollback.
struct save_of {
  std::int64_t step;
  std::int64_t content;
  save_of(std::int64_t step_) : save_of(step_, step_) {}
  save_of(std::int64_t step_, std::int64_t content_) : step(step_), content(content_) {}
};

sw::snapshot snapshot_of(const save_of& what) {
  auto toy = toy_at(what.content);
  sw::snapshot_pool pool(sw::snapshot_size(toy.list()), 1);
  return sw::snapshot::capture(pool.acquire(), toy.list(), what.step);
}

sw::saver_options options_with(std::shared_ptr<sw::io::file_system> files, int max_to_keep, int shards = 1) {
  return {.max_to_keep = max_to_keep, .shards = shards, .file_system = std::move(files)};
}

/// Saves `taken`. Returns after the retention has also removed old checkpoints.
void save_and_settle(sw::saver& saver, sw::snapshot taken) {
  saver.save_and_wait(std::move(taken));
  saver.drain();
}

/// How a directory is kept for one process.
enum class guard { lock, fence };

/// Returns `files`, for `guard::fence` with a fence for `directory`.
std::shared_ptr<sw::io::file_system> guarded(guard by, const std::string& directory, std::shared_ptr<sw::io::file_system> files) {
  if (by == guard::lock) { return files; }
  return std::make_shared<sw::io::fenced_directory>(directory, std::move(files));
}

/// Saves these steps in order until a failure. Returns true if all were saved.
bool try_to_save(const std::string& directory, const std::shared_ptr<sw::io::file_system>& files, int max_to_keep,
                 const std::vector<save_of>& saves, int shards = 1) {
  try {
    sw::saver saver(directory, options_with(files, max_to_keep, shards));
    for (const auto& what : saves) { save_and_settle(saver, snapshot_of(what)); }
    return true;
  } catch (const sw::error&) { return false; }
}

/// Checks a restart: the newest checkpoint is complete and acceptable, all views agree, temporary files are removed,
/// and later saves and retention work.
void check_after_restart(const std::string& directory, guard by, const std::set<std::int64_t>& acceptable, int max_to_keep,
                         std::int64_t next) {
  sw::saver saver(directory, options_with(guarded(by, directory, sw::test::fast_faulty_files()), max_to_keep));
  const auto newest = saver.restore_newest();
  const auto content = newest ? toy_in(*newest).global_step : -1;
  CHECK(acceptable.contains(content));
  if (newest) { CHECK(toy_in(*newest) == toy_at(content)); }
  CHECK(sw::latest_checkpoint(directory) == (newest ? std::optional(newest->prefix()) : std::nullopt));  // all views agree
  CHECK(names_in(directory).find(".tmp-") == std::string::npos);
  for (int i = 0; i <= max_to_keep; ++i) { save_and_settle(saver, toy_snapshot(next + i)); }
  std::string kept = newest ? std::to_string(*newest->step()) : "";  // the restored checkpoint is never deleted
  for (int i = 1; i <= max_to_keep; ++i) { kept += (kept.empty() ? "" : " ") + std::to_string(next + i); }
  CHECK(steps_in(directory) == kept);  // the retention knows every checkpoint on disk
}

struct scenario {
  std::vector<save_of> before;     // saved without a fault
  std::vector<save_of> under_way;  // saved until the fault
  int max_to_keep;
  std::set<std::int64_t> acceptable;  // steps that a restore may return; -1: no checkpoint
  int shards = 1;
};

/// Runs the scenario once with the fault at each operation. Returns the number of operations.
std::uint64_t sweep(const scenario& play, end how, guard by) {
  for (std::uint64_t number = 1;; ++number) {
    CAPTURE(number);
    const temporary_directory directory;
    const auto sound = guarded(by, directory.path(), sw::test::fast_faulty_files());
    REQUIRE(try_to_save(directory.path(), sound, play.max_to_keep, play.before, play.shards));
    const auto files = sw::test::fast_faulty_files();
    if (how == end::crash) { files->crash_at(number); }
    if (how == end::power_cut) { files->lose_power_at(number); }
    if (how == end::power_cut_and_names) { files->lose_power_and_names_at(number); }
    const bool all_saved =
        try_to_save(directory.path(), guarded(by, directory.path(), files), play.max_to_keep, play.under_way, play.shards);
    if (!files->has_crashed()) {
      CHECK(all_saved);
      return number;
    }
    check_after_restart(directory.path(), by, play.acceptable, play.max_to_keep, 1000);
  }
}

std::string flipped(std::string bytes, std::size_t bit) {
  bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ 1 << (bit % 8));
  return bytes;
}

/// A directory with saved steps 1 and 2. Its restore returns the step, or -1 for data loss.
struct pair_of_checkpoints {
  temporary_directory directory;
  std::string data = directory / "model.ckpt-2.data-00000-of-00001";
  std::string index = directory / "model.ckpt-2.index";

  pair_of_checkpoints() { REQUIRE(try_to_save(directory.path(), sw::test::fast_faulty_files(), 5, {1, 2})); }

  [[nodiscard]] std::int64_t newest_step() const {
    try {
      const auto reader = sw::latest_whole_checkpoint(directory.path());
      const auto toy = toy_in(*reader);
      return toy == toy_at(toy.global_step) ? toy.global_step : -2;
    } catch (const sw::data_loss_error&) { return -1; }
  }
};

}  // namespace

TEST_CASE("a kill or a power cut at any operation of the first save leaves nothing or all of it", "[fault][saver]") {
  sw::test::log_capture log;
  const auto how = GENERATE(end::crash, end::power_cut, end::power_cut_and_names);
  const auto by = GENERATE(guard::lock, guard::fence);
  CHECK(sweep({.before = {}, .under_way = {1}, .max_to_keep = 2, .acceptable = {-1, 1}}, how, by) > 20);
}

TEST_CASE("a kill or a power cut at any operation of a save that deletes an older one loses nothing", "[fault][saver]") {
  sw::test::log_capture log;
  const auto how = GENERATE(end::crash, end::power_cut, end::power_cut_and_names);
  const auto by = GENERATE(guard::lock, guard::fence);
  CHECK(sweep({.before = {1, 2}, .under_way = {3}, .max_to_keep = 2, .acceptable = {2, 3}}, how, by) > 30);
}

TEST_CASE("a kill or a power cut with one checkpoint kept leaves that one or the new one", "[fault][saver]") {
  sw::test::log_capture log;
  const auto how = GENERATE(end::crash, end::power_cut, end::power_cut_and_names);
  const auto by = GENERATE(guard::lock, guard::fence);
  sweep({.before = {1}, .under_way = {2, 3}, .max_to_keep = 1, .acceptable = {1, 2, 3}}, how, by);
}

TEST_CASE("a kill or a power cut while a step is saved again leaves the only checkpoint whole", "[fault][saver]") {
  sw::test::log_capture log;
  const auto how = GENERATE(end::crash, end::power_cut, end::power_cut_and_names);
  const auto by = GENERATE(guard::lock, guard::fence);
  const auto shards = GENERATE(1, 2);
  sweep({.before = {7}, .under_way = {{7, 70}, {7, 700}}, .max_to_keep = 1, .acceptable = {7, 70, 700}, .shards = shards}, how, by);
}

TEST_CASE("any operation that fails fails the save or is made up for, and the next save is good", "[fault][saver]") {
  sw::test::log_capture log;
  const auto errno_value = GENERATE(ENOSPC, EIO, EACCES);
  for (std::uint64_t number = 1;; ++number) {
    CAPTURE(number, errno_value);
    const temporary_directory directory;
    const auto files = sw::test::fast_faulty_files();
    sw::saver saver(directory.path(), options_with(files, 1));
    save_and_settle(saver, toy_snapshot(1));
    const auto before = files->operations();
    files->inject({.nth = number, .errno_value = errno_value, .bytes_written = 7});
    bool has_failed = false;
    try {
      save_and_settle(saver, toy_snapshot(2));
    } catch (const sw::error&) { has_failed = true; }
    if (files->operations() - before < number) {
      CHECK_FALSE(has_failed);
      break;
    }
    const auto newest = toy_in(*sw::latest_whole_checkpoint(directory.path()));
    CHECK((newest == toy_at(2) || (has_failed && newest == toy_at(1))));
    save_and_settle(saver, toy_snapshot(3));
    save_and_settle(saver, toy_snapshot(4));
    CHECK(toy_in(*saver.restore_newest()) == toy_at(4));
    CHECK(names_in(directory.path()).find(".tmp-") == std::string::npos);
  }
}

TEST_CASE("every flipped bit in the newest checkpoint is found, and the older one used with a warning", "[fault][reader]") {
  pair_of_checkpoints files;
  for (const auto& name : {files.data, files.index}) {
    const auto whole = sw::test::file_text(name);
    for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
      sw::test::log_capture log;
      sw::test::write_file_text(name, flipped(whole, bit));
      const auto newest = files.newest_step();
      const bool is_padding = name == files.index && bit / 8 >= whole.size() - 48 && bit / 8 < whole.size() - 8;
      const bool is_found = newest == 1 && log.count(sw::log_level::warning) == 1;
      if (!is_found && !(is_padding && newest == 2)) { FAIL("bit " << bit << " of " << name << ": step " << newest); }
    }
    sw::test::write_file_text(name, whole);
  }
  CHECK(files.newest_step() == 2);
}

TEST_CASE("the newest checkpoint cut at any length is found damaged, and the older one used", "[fault][reader]") {
  pair_of_checkpoints files;
  for (const auto& name : {files.data, files.index}) {
    const auto whole = sw::test::file_text(name);
    for (std::size_t length = 0; length < whole.size(); ++length) {
      sw::test::log_capture log;
      sw::test::write_file_text(name, whole.substr(0, length));
      const auto newest = files.newest_step();
      if (newest != 1) { FAIL(length << " bytes of " << name << ": step " << newest); }
    }
    sw::test::write_file_text(name, whole);
  }
}

TEST_CASE("when all are damaged it is data loss, wherever the damage", "[fault][reader]") {
  pair_of_checkpoints files;
  sw::test::log_capture log;
  std::filesystem::resize_file(files.directory / "model.ckpt-1.data-00000-of-00001", 100);
  for (const auto& name : {files.data, files.index}) {
    const auto whole = sw::test::file_text(name);
    for (std::size_t bit = 0; bit < 8 * whole.size(); bit += 61) {
      sw::test::write_file_text(name, flipped(whole, bit));
      const auto newest = files.newest_step();
      const bool is_footer = name == files.index && bit / 8 >= whole.size() - 48;
      CHECK((newest == -1 || (is_footer && newest == 2)));
    }
    sw::test::write_file_text(name, whole);
  }
}

TEST_CASE("a state file damaged at any bit or length never hides a checkpoint", "[fault][reader]") {
  pair_of_checkpoints files;
  const auto path = files.directory / "checkpoint";
  const auto whole = sw::test::file_text(path);
  for (std::size_t bit = 0; bit < 8 * whole.size(); bit += 3) {
    sw::test::log_capture log;
    sw::test::write_file_text(path, flipped(whole, bit));
    CHECK(files.newest_step() >= 1);
  }
  for (std::size_t length = 0; length < whole.size(); ++length) {
    sw::test::log_capture log;
    sw::test::write_file_text(path, whole.substr(0, length));
    CHECK(files.newest_step() == 2);
  }
}
