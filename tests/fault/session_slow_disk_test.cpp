// SPDX-License-Identifier: Apache-2.0
//
// Tests of saves slower than the cadence, and of a disk that never answers while the session closes. A gate blocks the
// disk, and the test moves the clock. No test sleeps.
#include "support/catch.hpp"
#include "support/gate.hpp"
#include "support/log_capture.hpp"
#include "support/once_waiting.hpp"
#include "support/session_rig.hpp"

#include <stepwell/base/error.hpp>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

namespace sw = stepwell;
using namespace std::chrono_literals;
using sw::test::once_waiting;
using sw::test::operation;
using sw::test::run_until;
using sw::test::session_rig;
using sw::test::wait_for_saves;

namespace {

/// A rig that blocks operations of one kind (default: writes) on paths that contain `what` while the gate is closed.
struct slow_rig : session_rig {
  std::shared_ptr<sw::test::gate> gate = std::make_shared<sw::test::gate>();

  explicit slow_rig(std::string what = "model.ckpt", operation kind = operation::write) {
    files->before_each([gate = gate, what, kind](const sw::test::event& asked) {
      if (asked.kind == kind && asked.path.find(what) != std::string::npos) { gate->pass(); }
    });
  }
  ~slow_rig() {
    gate->open();
    pool->join();
  }

  sw::test::adding_options slow_options(sw::when_busy policy) const {
    auto made = options();
    made.saves.save_steps = 1;
    made.saves.saver.max_staged_bytes = std::size_t{8} << 20;  // two small snapshots
    made.saves.saver.when_busy = policy;
    made.stop_grace_period_secs = 30;
    return made;
  }
};

struct hearing final : sw::checkpoint_saver_listener {
  std::vector<std::int64_t> before, after;
  int ends = 0;
  std::int64_t end_step = -1;
  void before_save(std::int64_t step) override { before.push_back(step); }
  bool after_save(const sw::saved_checkpoint& saved) override {
    after.push_back(saved.step);
    return false;
  }
  void end(std::int64_t step) override {
    ++ends;
    end_step = step;
  }
};

using steps = std::vector<std::int64_t>;

}  // namespace

TEST_CASE("when_busy wait: the step waits for the disk, and every save happens", "[fault][session][slow]") {
  slow_rig rig;
  std::atomic<bool> has_waited = false;
  rig.gate->close();
  auto session = sw::monitored_training_session(rig.model, rig.slow_options(sw::when_busy::wait));
  run_until(session, 1);  // step 0 is being written and step 1 is waiting: both buffers are in use
  {
    const once_waiting opener(rig.clock, [&] {
      has_waited = true;
      rig.gate->open();
    });
    run_until(session, 2);
    CHECK(has_waited);
  }
  run_until(session, 3);
  session.close();
  CHECK(rig.steps() == "0 1 2 3");
}

TEST_CASE("when_busy postpone: a save due while one is written is made when that ends, and no step waits", "[fault][session][slow]") {
  slow_rig rig;
  const auto heard = std::make_shared<hearing>();
  auto options = rig.slow_options(sw::when_busy::postpone);
  options.saves.save_steps = 3;
  options.saves.saver.max_staged_bytes = 0;
  options.saves.listeners = {heard};
  rig.gate->close();
  auto session = sw::monitored_training_session(rig.model, options);  // saves step 0, whose write waits at the gate
  rig.gate->wait_for_somebody();
  run_until(session, 3);
  CHECK(heard->before == steps{0});
  CHECK(session.metrics().saves_postponed == 1);
  CHECK(session.metrics().saves_skipped == 0);
  rig.gate->open();
  wait_for_saves(session);
  run_until(session, 5);
  CHECK(heard->before == steps{0, 4});
  wait_for_saves(session);
  CHECK(rig.steps() == "0 4");
  rig.gate->close();
  run_until(session, 7);  // the period counts from step 3, at which the save was due
  CHECK(heard->before == steps{0, 4, 6});
  {
    const once_waiting opener(rig.clock, [&] { rig.gate->open(); });
    session.close();  // waits for the buffer, and saves the last state
  }
  CHECK(rig.steps() == "0 4 6 7");
}

TEST_CASE("checkpoint_now is not postponed", "[fault][session][slow]") {
  slow_rig rig;
  auto options = rig.slow_options(sw::when_busy::postpone);
  options.saves.save_steps = 100;
  options.saves.saver.max_staged_bytes = 0;
  rig.gate->close();
  auto session = sw::monitored_training_session(rig.model, options);
  rig.gate->wait_for_somebody();
  run_until(session, 2);
  {
    const once_waiting opener(rig.clock, [&] { rig.gate->open(); });
    session.checkpoint_now();
  }
  CHECK(rig.steps() == "0 2");
}

TEST_CASE("a session with saves holds one copy of its variables at a time", "[fault][session][slow]") {
  slow_rig rig;
  auto options = rig.slow_options(sw::when_busy::postpone);
  options.saves.saver.max_staged_bytes = 0;
  options.saves.save_steps = 2;
  rig.model.weights.resize(100'000);
  rig.gate->close();
  auto session = sw::monitored_training_session(rig.model, options);
  rig.gate->wait_for_somebody();
  const auto copy = session.metrics().snapshot_bytes;  // the snapshot in flight; no other copy is kept for recovery
  const auto needed = sw::snapshot_size(rig.model.variables());
  CHECK(copy >= needed);
  CHECK(copy < needed + 1024);
  run_until(session, 4);
  CHECK(session.metrics().snapshot_bytes == copy);
  rig.gate->open();
  wait_for_saves(session);
  CHECK(session.metrics().snapshot_bytes == 0);  // nobody knows yet when the next save is due
  run_until(session, 5);                         // makes the postponed save
  wait_for_saves(session);
  const auto kept = session.metrics().snapshot_bytes;
  CHECK(kept != 0);  // two saves were less than a minute apart
  rig.clock->advance(61s);
  run_until(session, 6);
  wait_for_saves(session);
  CHECK(session.metrics().snapshot_bytes == 0);
  session.close();
}

TEST_CASE("after a restore no copy is kept", "[fault][session][slow]") {
  slow_rig rig;
  {
    auto session = sw::monitored_training_session(rig.model, rig.options());
    run_until(session, 2);
    session.close();
  }
  auto session = sw::monitored_training_session(rig.model, rig.options());
  CHECK(session.restored_from());
  CHECK(session.metrics().snapshot_bytes == 0);
}

TEST_CASE("while there is no checkpoint, a recovery continues from the snapshot of the save that failed", "[fault][session][slow]") {
  sw::test::log_capture log;
  slow_rig rig;
  auto options = rig.slow_options(sw::when_busy::postpone);
  options.saves.saver.max_staged_bytes = 0;
  options.saves.saver.on_error = sw::on_save_error::warn();
  options.retry.initial_backoff = 0;
  rig.files->inject({.kind = operation::sync, .path_contains = "model.ckpt-0", .errno_value = EIO});
  auto session = sw::monitored_training_session(rig.model, options);
  wait_for_saves(session);
  CHECK(rig.steps().empty());
  CHECK(session.metrics().snapshot_bytes != 0);
  rig.files->inject({.kind = operation::sync, .path_contains = "model.ckpt-1", .errno_value = EIO});
  run_until(session, 1);
  wait_for_saves(session);
  session.raw_session().run(std::tuple{}, std::int64_t{2});
  rig.model.before = [fails = true](std::int64_t) mutable {
    if (std::exchange(fails, false)) { throw sw::aborted_error("once"); }
  };
  session.run(std::int64_t{2});
  CHECK(log.contains(sw::log_level::info, "the state of step 1 is restored from memory"));
  CHECK(session.global_step() == 2);
  CHECK(same(rig.model, sw::test::model_after(2)));
  wait_for_saves(session);
  session.close();
  CHECK(session.metrics().snapshot_bytes == 0);
}

TEST_CASE("when_busy skip: what finds no room is not saved, with a warning, and the last one always is", "[fault][session][slow]") {
  sw::test::log_capture log;
  slow_rig rig;
  const auto heard = std::make_shared<hearing>();
  auto options = rig.slow_options(sw::when_busy::skip);
  options.saves.listeners = {heard};
  rig.gate->close();
  auto session = sw::monitored_training_session(rig.model, options);  // saves step 0, whose write waits at the gate
  run_until(session, 4);
  CHECK(log.contains(sw::log_level::warning, "step 2 is not saved"));
  CHECK(log.contains(sw::log_level::warning, "step 4 is not saved"));
  CHECK(heard->before == steps{0, 1});  // listeners are not notified of a skipped save
  {
    const once_waiting opener(rig.clock, [&] { rig.gate->open(); });
    session.close();
  }
  CHECK(rig.steps() == "0 1 4");
  CHECK(heard->before == steps{0, 1, 4});
  CHECK(heard->after == steps{0, 1, 4});
  CHECK(heard->ends == 1);
  CHECK(heard->end_step == 4);
}

TEST_CASE("when_busy skip: a buffer that has just come free has room for a save", "[fault][session][slow]") {
  slow_rig rig;
  auto options = rig.slow_options(sw::when_busy::skip);
  auto session = sw::monitored_training_session(rig.model, options);
  auto& saver = session.hook<sw::checkpoint_saver_hook>().saver();
  wait_for_saves(session);
  // The listener is notified of a finished save whose buffer is free, but the save is not quite over. The next save
  // must not be skipped.
  sw::test::gate told;
  told.close();
  saver.on_saved([&](const sw::saved_checkpoint&) { told.pass(); });
  run_until(session, 2);
  told.wait_for_somebody();
  session.run(std::int64_t{3});
  told.open();
  wait_for_saves(session);
  CHECK(rig.steps() == "0 1 2 3");  // checked before close, which would save step 3 in any case
  session.close();
}

TEST_CASE("when_busy coalesce: the newest takes the place of the one that waits", "[fault][session][slow]") {
  slow_rig rig;
  const auto heard = std::make_shared<hearing>();
  auto options = rig.slow_options(sw::when_busy::coalesce);
  options.saves.listeners = {heard};
  rig.gate->close();
  auto session = sw::monitored_training_session(rig.model, options);
  rig.gate->wait_for_somebody();
  run_until(session, 4);  // 1 waits; 2, 3 and 4 replace it in turn; no step blocks
  rig.gate->open();
  wait_for_saves(session);
  CHECK(rig.steps() == "0 4");
  session.close();
  CHECK(rig.steps() == "0 4");
  CHECK(heard->after == steps{0, 4});
}

TEST_CASE("close waits no longer than its grace period for a stuck save, and neither does the end of the session",
          "[fault][session][slow]") {
  sw::test::log_capture log;
  slow_rig rig;
  const int saves_under_way = GENERATE(1, 2);  // the last save finds one free buffer, or none
  {
    rig.gate->close();
    auto session = sw::monitored_training_session(rig.model, rig.slow_options(sw::when_busy::wait));
    run_until(session, saves_under_way - 1);
    rig.gate->wait_for_somebody();
    session.raw_session().run(std::tuple{}, session.global_step() + 1);  // changes the state after the last save
    const once_waiting mover(rig.clock, [&] { rig.clock->advance(31s); });
    CHECK_THROWS_AS(session.close(), sw::deadline_exceeded_error);
  }
  CHECK(log.contains(sw::log_level::error, "still being written in the background"));
  CHECK_THROWS_AS(rig.start(), sw::failed_precondition_error);  // the directory is still locked
  rig.gate->open();
  rig.settle();
  rig.settle();
  rig.settle();
  sw::test::adding_model later;
  auto session = sw::monitored_training_session(later, {.checkpoint_dir = rig.directory.path()});
  CHECK(session.restored_from());
  CHECK(sw::test::names_in(rig.directory.path()).find(".tmp-") == std::string::npos);
}

TEST_CASE("close waits no longer than its grace period for a stuck event file", "[fault][session][slow]") {
  sw::test::log_capture log;
  slow_rig rig("tfevents");
  {
    auto options = rig.slow_options(sw::when_busy::wait);
    options.saves.saver.pool = std::make_shared<sw::io::pool>(2);  // a second thread, so that saves do not wait for events
    auto session = sw::monitored_training_session(rig.model, options);
    run_until(session, 2);
    wait_for_saves(session);  // the deadline below applies to the event file only
    rig.gate->close();
    const once_waiting mover(rig.clock, [&] {
      rig.gate->wait_for_somebody();
      rig.clock->advance(31s);
    });
    CHECK_THROWS_AS(session.close(), sw::deadline_exceeded_error);
    rig.pool = options.saves.saver.pool;
  }
  CHECK(rig.steps() == "0 1 2");
}

namespace {

/// A session that writes a scalar at each step. Saves and events each have a thread.
struct recording_rig : slow_rig {
  recording_rig() : slow_rig("tfevents", operation::sync) { pool = std::make_shared<sw::io::pool>(2); }

  sw::test::adding_options recording_options() const {
    auto made = options();
    made.summaries.save_steps = 1;
    return made;
  }
  static auto recorded() {
    return sw::summaries([](sw::summary::writer& out, const auto&, const auto&, std::int64_t step) { out.add_scalar("step", step, step); });
  }
  bool has_checkpoint(std::int64_t step) const {
    return std::filesystem::exists(directory / ("model.ckpt-" + std::to_string(step) + ".index"));
  }
  /// Blocks syncs of event files at the gate from now on. The data file of the next checkpoint is renamed only after a
  /// sync waits there.
  void hold_events() const {
    gate->close();
    files->before_each([gate = gate, is_next = std::make_shared<std::atomic<bool>>(true)](const sw::test::event& asked) {
      if (asked.kind == operation::sync && asked.path.find("tfevents") != std::string::npos) { gate->pass(); }
      const bool is_data = asked.kind == operation::rename && asked.path.find(".data-") != std::string::npos;
      if (is_data && is_next->exchange(false)) { gate->wait_for_somebody(); }
    });
  }
};

}  // namespace

TEST_CASE("a checkpoint is committed after the event records up to its step are durable, and no step waits for that",
          "[fault][session][slow]") {
  recording_rig rig;
  auto session = sw::monitored_training_session(rig.model, rig.recording_options(), rig.recorded());
  wait_for_saves(session);
  rig.hold_events();
  const auto alarms = rig.clock->pending();
  run_until(session, 3);
  CHECK(rig.clock->wait_for_pending(alarms + 1));  // the saver waits
  CHECK_FALSE(rig.has_checkpoint(2));
  rig.gate->open();
  wait_for_saves(session);
  CHECK(rig.has_checkpoint(2));
  session.close();
}

TEST_CASE("the last checkpoint is committed after the event records, too", "[fault][session][slow]") {
  recording_rig rig;
  auto session = sw::monitored_training_session(rig.model, rig.recording_options(), rig.recorded());
  run_until(session, 3);
  wait_for_saves(session);
  rig.hold_events();
  std::atomic<bool> is_early = false;
  {
    const std::jthread opener([&, alarms = rig.clock->pending()] {
      static_cast<void>(rig.clock->wait_for_pending(alarms + 2));  // close and the saver wait
      is_early = rig.has_checkpoint(3);
      rig.gate->open();
    });
    session.close();
  }
  CHECK_FALSE(is_early);
  CHECK(rig.has_checkpoint(3));
}

TEST_CASE("a checkpoint is committed although the event file cannot be written, which is logged once", "[fault][session][slow]") {
  sw::test::log_capture log;
  recording_rig rig;
  auto session = sw::monitored_training_session(rig.model, rig.recording_options(), rig.recorded());
  wait_for_saves(session);
  rig.files->inject({.kind = operation::sync, .path_contains = "tfevents"});
  run_until(session, 2);
  wait_for_saves(session);
  CHECK(rig.has_checkpoint(2));
  CHECK_THROWS_WITH(session.run(std::int64_t{3}), ContainsSubstring("tfevents"));
  run_until(session, 4);
  wait_for_saves(session);
  CHECK(rig.has_checkpoint(4));
  session.close();
  const auto all = log.messages();
  CHECK(std::ranges::count_if(all, [](const auto& one) { return one.text.find("committed without") != std::string::npos; }) == 1);
}

TEST_CASE("a session left by an error waits no longer than its grace period either", "[fault][session][slow]") {
  sw::test::log_capture log;
  slow_rig rig;
  rig.gate->close();
  {
    auto session = sw::monitored_training_session(rig.model, rig.slow_options(sw::when_busy::wait));
    rig.gate->wait_for_somebody();
    const once_waiting mover(rig.clock, [&] { rig.clock->advance(31s); });
    session.abandon(std::make_exception_ptr(sw::unknown_error("the body failed")));
  }
  CHECK(log.contains(sw::log_level::error, "while shutting down after an error"));
}

TEST_CASE("a try again that is due too late for close is made at once", "[fault][session][slow]") {
  sw::test::log_capture log;
  slow_rig rig;
  {
    auto options = rig.slow_options(sw::when_busy::wait);
    options.saves.saver.on_error = sw::on_save_error::retry(3, 10min);
    auto session = sw::monitored_training_session(rig.model, options);
    wait_for_saves(session);
    rig.files->inject({.kind = operation::sync, .path_contains = "model.ckpt-1", .errno_value = EIO});
    const auto alarms = rig.clock->pending();
    run_until(session, 1);
    static_cast<void>(session.hook<sw::checkpoint_saver_hook>().saver());  // begins the save, as the next operation of the session does
    REQUIRE(rig.clock->wait_for_pending(alarms + 1));                      // the saver will retry in ten minutes
    CHECK_NOTHROW(session.close());
  }
  CHECK(rig.steps() == "0 1");
}
