// SPDX-License-Identifier: Apache-2.0
//
// Tests that each due step is saved with its state, on a disk of any speed. A gate makes the disk slow; no test sleeps. The options of the
// saver have their default values, except those of the test's file system and threads.
#include "support/catch.hpp"
#include "support/gate.hpp"
#include "support/log_capture.hpp"
#include "support/once_waiting.hpp"
#include "support/session_rig.hpp"

#include <stepwell/base/error.hpp>
#include <stepwell/hooks/nan_hooks.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace sw = stepwell;
using namespace std::chrono_literals;
using sw::test::counting_source;
using sw::test::operation;
using sw::test::run_until;

namespace {

/// A model that returns NaN the first time that it takes the batch `bad_batch`.
struct nan_model : sw::test::adding_model {
  std::int64_t bad_batch = -1;

  result step(const std::int64_t& batch) {
    auto made = adding_model::step(batch);
    if (batch == bad_batch) { sum = made.loss = std::numeric_limits<float>::quiet_NaN(); }
    return made;
  }
};

/// A rig that blocks writes of checkpoints while the gate is closed.
struct slow_rig : sw::test::session_rig {
  sw::test::gate gate;
  nan_model model;

  slow_rig() {
    files->before_each([this](const sw::test::event& asked) {
      if (asked.kind == operation::write && asked.path.find("model.ckpt") != std::string::npos) { gate.pass(); }
    });
  }
  ~slow_rig() {
    gate.open();
    pool->join();
  }
  [[nodiscard]] sw::training_options every_step() const {
    return {.checkpoint_dir = directory.path(),
            .saves = {.save_steps = 1, .saver = {.max_to_keep = sw::none, .file_system = files, .pool = pool}},
            .summaries = {.save_steps = sw::none},
            .step_counter = {.every_n_steps = sw::none},
            .retry = {.initial_backoff = 0},
            .clock = clock};
  }
  [[nodiscard]] sw::test::adding_model saved_at(std::int64_t step) const {
    sw::test::adding_model found;
    sw::restore(found.variables(), sw::checkpoint_reader(directory / ("model.ckpt-" + std::to_string(step))));
    return found;
  }
};

}  // namespace

TEST_CASE("every due step is saved with its own state while the first save is still being written", "[hooks][checkpoint_saver_hook][due]") {
  slow_rig rig;
  rig.gate.close();
  auto session = sw::monitored_training_session(rig.model, rig.every_step());
  rig.gate.wait_for_somebody();
  run_until(session, 3);
  rig.gate.open();
  session.close();
  CHECK(rig.steps() == "0 1 2 3");
  for (std::int64_t step = 0; step <= 3; ++step) { CHECK(sw::test::same(rig.saved_at(step), sw::test::model_after(step))); }
}

TEST_CASE("a save at each step with max_to_keep 3 lists the last three steps, on a slow disk, too", "[hooks][checkpoint_saver_hook][due]") {
  slow_rig rig;
  auto options = rig.every_step();
  options.saves.saver.max_to_keep = 3;
  rig.gate.close();
  auto session = sw::monitored_training_session(rig.model, options);
  rig.gate.wait_for_somebody();
  const auto last = GENERATE(std::int64_t{2}, std::int64_t{5});
  run_until(session, last);
  rig.gate.open();
  session.close();
  CHECK(rig.steps() == (last == 2 ? "0 1 2" : "3 4 5"));
}

TEST_CASE("a good due state is not lost if the next step is NaN", "[hooks][checkpoint_saver_hook][due]") {
  slow_rig rig;
  rig.model.bad_batch = 2;
  rig.gate.close();
  {
    auto session = sw::monitored_training_session(rig.model, rig.every_step(), sw::nan_tensor_hook(&nan_model::result::loss));
    rig.gate.wait_for_somebody();
    session.run(std::int64_t{1});
    CHECK_THROWS_AS(session.run(std::int64_t{2}), sw::nan_loss_error);
    rig.gate.open();
  }
  CHECK(rig.steps() == "0 1");
  CHECK(sw::test::same(rig.saved_at(1), sw::test::model_after(1)));
}

TEST_CASE("a run with rollbacks takes the same batches on a slow disk as on a fast one", "[hooks][checkpoint_saver_hook][due]") {
  slow_rig rig;
  rig.model.bad_batch = 4;
  const bool is_slow = GENERATE(false, true);
  if (is_slow) { rig.gate.close(); }
  auto session = sw::monitored_training_session(rig.model, rig.every_step(),
                                                sw::rollback_on_nan_hook(&nan_model::result::loss, [&] { rig.model.bad_batch = -1; }),
                                                sw::stop_at_step_hook{{.last_step = 5}});
  std::optional<sw::test::once_waiting> opener;
  if (is_slow) {
    opener.emplace(rig.clock, [&] { rig.gate.open(); });
  }  // the rollback waits for the saves in flight
  std::vector<std::int64_t> batches;
  rig.model.before = [&](std::int64_t batch) { batches.push_back(batch); };
  counting_source source;
  for ([[maybe_unused]] const auto& step : session.steps(source)) {}
  session.close();
  CHECK(batches == std::vector<std::int64_t>{1, 2, 3, 4, 4, 5});
  CHECK(rig.steps() == "0 1 2 3 4 5");
}

TEST_CASE("beyond max_staged_bytes, a step waits for the oldest save, and the wait is counted", "[hooks][checkpoint_saver_hook][due]") {
  const sw::test::log_capture log;
  slow_rig rig;
  auto options = rig.every_step();
  options.saves.saver.max_staged_bytes = 0;
  rig.gate.close();
  auto session = sw::monitored_training_session(rig.model, options);
  rig.gate.wait_for_somebody();
  {
    const sw::test::once_waiting opener(rig.clock, [&] {
      rig.clock->advance(3s);
      rig.gate.open();
    });
    session.run(std::int64_t{1});
  }
  CHECK(session.metrics().saves_waited == 1);
  CHECK(session.metrics().total_save_wait.count() == 3);
  CHECK(session.metrics().saves_postponed == 0);
  CHECK(log.contains(sw::log_level::warning, "the save of step 1 waited 3.0 s for earlier saves"));
  session.close();
  CHECK(rig.steps() == "0 1");
}

TEST_CASE("copies are held beside the first one only while all of them fit into max_staged_bytes", "[hooks][checkpoint_saver_hook][due]") {
  slow_rig rig;
  rig.model.weights.resize(std::size_t{6} << 20);  // 24 MiB
  rig.gate.close();
  auto session = sw::monitored_training_session(rig.model, rig.every_step());  // 64 MiB hold two copies
  rig.gate.wait_for_somebody();
  const auto one = session.metrics().snapshot_bytes;
  CHECK(one < std::size_t{27} << 20);
  session.run(std::int64_t{1});
  CHECK(session.metrics().saves_waited == 0);
  CHECK(session.metrics().snapshot_bytes == 2 * one);
  {
    const sw::test::once_waiting opener(rig.clock, [&] { rig.gate.open(); });
    session.run(std::int64_t{2});
  }
  CHECK(session.metrics().saves_waited == 1);
  CHECK(session.metrics().snapshot_bytes <= 2 * one);
  session.close();
  CHECK(rig.steps() == "0 1 2");
}

TEST_CASE("memory for copies beside the first one is given back when saves are rare again", "[hooks][checkpoint_saver_hook][due]") {
  slow_rig rig;
  rig.gate.close();
  auto session = sw::monitored_training_session(rig.model, rig.every_step());
  run_until(session, 3);
  rig.gate.open();
  sw::test::wait_for_saves(session);
  CHECK(session.metrics().snapshot_bytes != 0);
  rig.clock->advance(61s);
  run_until(session, 4);
  sw::test::wait_for_saves(session);
  CHECK(session.metrics().snapshot_bytes == 0);
  session.close();
}

TEST_CASE("a stop during the wait for an earlier save limits the wait to the grace period", "[hooks][checkpoint_saver_hook][due]") {
  const sw::test::log_capture log;
  slow_rig rig;
  auto options = rig.every_step();
  options.saves.saver.max_staged_bytes = 0;
  options.stop_grace_period_secs = 30;
  rig.gate.close();
  auto session = sw::monitored_training_session(rig.model, options);
  rig.gate.wait_for_somebody();
  std::atomic<bool> is_over = false;
  std::jthread stopper([&] {
    static_cast<void>(rig.clock->wait_for_pending(1));
    rig.clock->advance(1h);  // without a stop, the wait has no end
    session.request_stop("enough");
    for (int i = 0; i < 1'000'000 && !is_over; ++i) {
      rig.clock->advance(1s);
      std::this_thread::yield();
    }
    rig.gate.open();
  });
  CHECK_THROWS_WITH(session.run(std::int64_t{1}), ContainsSubstring("this state cannot be saved because earlier saves have not ended"));
  is_over = true;
}
