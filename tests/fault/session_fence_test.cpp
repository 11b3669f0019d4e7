// SPDX-License-Identifier: Apache-2.0
//
// Tests of a training session that is suspended before any operation on its directory while another session takes the directory over. The
// suspended session must end with an error, and must not change the directory any more.
#include "support/catch.hpp"
#include "support/log_capture.hpp"
#include "support/session_rig.hpp"

#include <stepwell/base/error.hpp>
#include <stepwell/checkpoint/saver.hpp>
#include <stepwell/group/engine.hpp>
#include <stepwell/group/group.hpp>
#include <stepwell/hooks/best_checkpoint_hook.hpp>
#include <stepwell/hooks/summary_saver_hook.hpp>
#include <stepwell/io/fenced_directory.hpp>
#include <stepwell/io/pool.hpp>
#include <stepwell/summary/metric_writer.hpp>

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace sw = stepwell;
using sw::io::fenced_directory;
using sw::test::adding_model;
using sw::test::contents_of;
using sw::test::fault_file_system;
using sw::test::newest_in;
using sw::test::operation;
using sw::test::run_until;
using sw::test::same;
using sw::test::temporary_directory;

namespace {

constexpr std::int64_t last_step = 7;

/// Returns true for operations that can change a directory or a file.
bool may_change(operation kind) {
  using enum operation;
  return kind == open || kind == write || kind == truncate || kind == rename || kind == remove || kind == create_directories ||
         kind == create_directory;
}

/// A training process: its model, its disk, and its right to change the directory.
struct process {
  explicit process(const std::string& path, sw::io::fence_use use = sw::io::fence_use::always)
      : directory(path), fence(std::make_shared<fenced_directory>(path, disk, use)) {}

  /// Returns a session that writes files of all kinds: checkpoints, best checkpoints, event files, metric files and the ending file.
  [[nodiscard]] auto start() {
    const sw::summary::metric_writer_options how = {.file_system = fence, .threads = pool, .clock = clock};
    return sw::monitored_training_session(
        model,
        {.checkpoint_dir = directory,
         .metrics = {std::make_shared<sw::summary::csv_writer>(directory + "/metrics.csv", how)},
         .saves = {.save_steps = 2, .saver = {.max_to_keep = 2, .on_error = policy, .file_system = fence, .pool = pool}},
         .summaries = {.save_steps = 1},
         .step_counter = {.every_n_steps = 1},
         .clock = clock},
        sw::summaries(sw::summary::scalar("sum", &adding_model::result::loss)),
        sw::best_checkpoint_hook{{}, [](const adding_model::result& result) { return -static_cast<double>(result.loss); }});
  }

  /// Trains and closes. Returns the text of the error that ends the session, if it is one that is not retried.
  [[nodiscard]] std::optional<std::string> train(std::int64_t until = last_step) {
    try {
      auto session = start();
      run_until(session, until);
      session.close();
      return std::nullopt;
    } catch (const sw::failed_precondition_error& refused) { return refused.what(); }
  }

  /// Restores the newest checkpoint, trains until step `until` and saves, without a session: a session that is suspended while it registers
  /// its event file blocks all other sessions of this test. Returns the text of the error, like `train`.
  [[nodiscard]] std::optional<std::string> train_alone(std::int64_t until) {
    try {
      sw::saver saver(directory, {.max_to_keep = 2, .file_system = fence, .pool = pool});
      std::int64_t step = 0;
      auto all = model.variables();
      all.emplace_back("global_step", step);
      if (const auto newest = saver.restore_newest()) { sw::restore(all, *newest); }
      while (step < until) { model.step(++step); }
      sw::snapshot_pool buffers(sw::snapshot_size(all));
      saver.save_and_wait(sw::snapshot::capture(buffers.acquire(), all, step));
      saver.drain();
      return std::nullopt;
    } catch (const sw::failed_precondition_error& refused) { return refused.what(); }
  }

  /// Calls `action` before the operation with this number, of those that may change something and begin after this call.
  void pause_at(std::uint64_t number, std::function<void()> action) {
    disk->before_each([=, this, count = std::make_shared<std::uint64_t>(0)](const auto& now) {
      const std::lock_guard lock(one_at_a_time);  // meanwhile, the other threads of this process are suspended, too
      if (may_change(now.kind) && ++*count == number) { action(); }
    });
  }

  std::string directory;
  std::shared_ptr<fault_file_system> disk = sw::test::fast_faulty_files();
  std::shared_ptr<fenced_directory> fence;
  std::shared_ptr<sw::manual_clock> clock = std::make_shared<sw::manual_clock>();
  std::shared_ptr<sw::io::pool> pool = std::make_shared<sw::io::pool>(2);
  sw::on_save_error policy = sw::on_save_error::stop();
  std::mutex one_at_a_time;
  adding_model model;
};

void check_taken_over(const std::string& text) {
  CAPTURE(text);
  CHECK(text.find(" has taken over this directory as its writer ") != std::string::npos);
}

}  // namespace

TEST_CASE("D-41 a session that was suspended before any change of its directory changes nothing after another has taken it over",
          "[fault][fence]") {
  std::uint64_t refused = 0;
  std::uint64_t number = 1;
  for (bool was_paused = true; was_paused; ++number) {
    CAPTURE(number);
    const temporary_directory directory;
    sw::test::log_capture log;
    process late(directory.path());
    REQUIRE(late.fence->open_fence().ok());
    process newer(directory.path());
    std::map<std::string, std::string> before;
    was_paused = false;
    late.pause_at(number, [&] {
      was_paused = true;
      CHECK_FALSE(newer.train_alone(last_step + 2));
      before = contents_of(directory.path());
    });
    const auto text = late.train();
    if (!was_paused) {
      CHECK_FALSE(text);
      break;
    }
    CHECK(contents_of(directory.path()) == before);
    if (text) {
      check_taken_over(*text);
      ++refused;
    }
    late.disk->before_each(nullptr);
    const auto newest = newest_in(directory.path());
    CHECK(newest.step == last_step + 2);
    CHECK(same(newest.model, sw::test::model_after(last_step + 2)));
  }
  CHECK(number > 150);
  CHECK(refused + 10 > number);  // a session suspended in its last operations has nothing left to change
}

TEST_CASE("of two sessions that are suspended in turn both are refused, and the newest one restores", "[fault][fence]") {
  for (std::uint64_t first_at = 1; first_at < 12; first_at += 3) {
    for (std::uint64_t second_at = 1; second_at < 150; second_at += 17) {
      CAPTURE(first_at, second_at);
      const temporary_directory directory;
      sw::test::log_capture log;
      process first(directory.path());
      process second(directory.path());
      process third(directory.path());
      REQUIRE(first.fence->open_fence().ok());
      std::map<std::string, std::string> before;
      std::optional<std::string> of_second;
      second.pause_at(second_at, [&] {
        CHECK_FALSE(third.train_alone(last_step + 4));
        before = contents_of(directory.path());
      });
      first.pause_at(first_at, [&] {
        of_second = second.train(last_step + 2);
        second.disk->before_each(nullptr);
      });
      const auto of_first = first.train_alone(last_step);
      first.disk->before_each(nullptr);
      REQUIRE(of_first);
      check_taken_over(*of_first);
      if (of_second) {
        check_taken_over(*of_second);
        CHECK(contents_of(directory.path()) == before);
        CHECK(newest_in(directory.path()).step == last_step + 4);
      } else {  // the second one was suspended before it opened the directory, so it was the newest
        CHECK(newest_in(directory.path()).step >= last_step + 2);
      }
    }
  }
}

TEST_CASE("a save of a session whose directory was taken over is final with every policy, and is not retried", "[fault][fence]") {
  const auto policy = GENERATE(sw::on_save_error::stop(), sw::on_save_error::warn(), sw::on_save_error::retry(3));
  const temporary_directory directory;
  sw::test::log_capture log;
  process late(directory.path());
  late.policy = policy;
  auto session = late.start();
  run_until(session, 3);
  sw::test::wait_for_saves(session);
  fenced_directory newer(directory.path());
  REQUIRE(newer.open_fence().ok());
  try {
    run_until(session, 9);
    session.close();
    FAIL("the session did not notice that its directory was taken over");
  } catch (const sw::failed_precondition_error& refused) { check_taken_over(refused.what()); }
}

TEST_CASE("where files cannot be locked, a later session takes the directory over", "[fault][fence]") {
  const int reason = GENERATE(ENOLCK, EOPNOTSUPP, ENOSYS);
  const temporary_directory directory;
  sw::test::log_capture log;
  process late(directory.path(), sw::io::fence_use::if_not_lockable);
  process newer(directory.path(), sw::io::fence_use::if_not_lockable);
  for (auto* const one : {&late, &newer}) { one->disk->inject({.kind = operation::lock, .errno_value = reason, .from_then_on = true}); }
  auto session = late.start();
  run_until(session, 3);
  sw::test::wait_for_saves(session);
  CHECK_FALSE(newer.train());
  const auto before = contents_of(directory.path());
  CHECK_THROWS_AS((run_until(session, 9), session.close()), sw::failed_precondition_error);
  CHECK(contents_of(directory.path()) == before);
  CHECK(newest_in(directory.path()).step == last_step);
}

TEST_CASE("a session that can lock a directory with a fence also takes over the fence", "[fault][fence]") {
  const temporary_directory directory;
  sw::test::log_capture log;
  process late(directory.path());
  auto session = late.start();
  run_until(session, 3);
  sw::test::wait_for_saves(session);
  sw::test::session_rig rig;
  auto options = rig.options();
  options.checkpoint_dir = directory.path();
  auto other = sw::monitored_training_session(rig.model, options);
  run_until(other, 5);
  other.close();
  CHECK(late.fence->check().error().code == sw::errc::failed_precondition);
  CHECK_THROWS_AS((run_until(session, 9), session.close()), sw::failed_precondition_error);
}

TEST_CASE("a session with a group always uses the fence, and is replaced by a later one", "[fault][fence][group]") {
  const temporary_directory directory;
  sw::test::log_capture log;
  sw::test::session_rig rig;
  auto options = rig.options();
  options.checkpoint_dir = directory.path();
  options.group = std::make_shared<sw::group>(sw::make_single_process_engine());
  auto session = sw::monitored_training_session(rig.model, options);
  run_until(session, 3);
  CHECK_FALSE(std::filesystem::exists(directory / ".stepwell.lock"));
  CHECK(std::filesystem::exists(directory / ".stepwell-writer-1"));
  adding_model other_model;
  options.group = std::make_shared<sw::group>(sw::make_single_process_engine());
  auto other = sw::monitored_training_session(other_model, options);
  run_until(other, 5);
  other.close();
  CHECK_THROWS_AS((run_until(session, 9), session.close()), sw::failed_precondition_error);
  CHECK(newest_in(directory.path()).step == 5);
}
