// SPDX-License-Identifier: Apache-2.0
//
// Tests of recovery and saves: a recovery first finishes the save in progress, and restores a checkpoint completely.
#include "support/catch.hpp"
#include "support/gate.hpp"
#include "support/log_capture.hpp"
#include "support/once_waiting.hpp"
#include "support/recording_hook.hpp"
#include "support/recovery_rig.hpp"

#include <stepwell/hooks/summary_saver_hook.hpp>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace sw = stepwell;
using namespace sw::test;
using namespace std::chrono_literals;

namespace {

/// A rig that blocks writes to data files while the gate is closed.
struct gated_rig : recovery_rig {
  std::shared_ptr<sw::test::gate> gate = std::make_shared<sw::test::gate>();

  gated_rig() {
    files->before_each([gate = gate](const sw::test::event& asked) {
      if (asked.kind == operation::write && asked.path.find(".data-") != std::string::npos) { gate->pass(); }
    });
  }
  ~gated_rig() {
    gate->open();
    pool->join();
  }
};

/// A hook that counts its runs in saved state.
struct run_counter {
  static constexpr auto state_name = "counter";
  std::int64_t runs = 0;

  void after_run(auto&, const auto&) { ++runs; }
  sw::variable_list variables() { return sw::variables({{"runs", runs}}); }
};

}  // namespace

TEST_CASE("REC-10 a save under way is finished before the session is restored, and is what it is restored from", "[session][recovery]") {
  gated_rig rig;
  auto session = rig.start_saving_every(1, run_counter{});
  wait_for_saves(session);
  rig.gate->close();
  session.run(std::int64_t{1});                                          // the save waits at the gate
  static_cast<void>(session.hook<sw::checkpoint_saver_hook>().saver());  // begins the save, as the next operation of the session does
  rig.gate->wait_for_somebody();
  rig.model.before = failing_batches{{2}};
  {
    const once_waiting opener(rig.clock, [&] { rig.gate->open(); });
    CHECK(session.run(std::int64_t{2}).loss == 3);
  }
  CHECK(session.restored_from() == rig.directory.path() + "/model.ckpt-1");
  CHECK(session.global_step() == 2);
  CHECK(session.hook<run_counter>().runs == 2);  // the state of hooks is restored with the model
  session.close();
  CHECK(rig.steps() == "0 1 2");
}

TEST_CASE("a save that does not end in the grace period ends the call; the next one recovers", "[session][recovery]") {
  sw::test::log_capture log;
  gated_rig rig;
  rig.setup.options.stop_grace_period_secs = 30s;
  auto session = rig.start_saving_every(1);
  wait_for_saves(session);
  rig.gate->close();
  session.run(std::int64_t{1});
  static_cast<void>(session.hook<sw::checkpoint_saver_hook>().saver());  // begins the save, as the next operation of the session does
  rig.gate->wait_for_somebody();
  rig.model.before = failing_batches{{2}};
  {
    const once_waiting mover(rig.clock, [&] { rig.clock->advance(30s); });
    CHECK_THROWS_AS(session.run(std::int64_t{2}), sw::deadline_exceeded_error);
  }
  CHECK(session.should_stop());
  rig.gate->open();
  wait_for_saves(session);
  CHECK(session.run(std::int64_t{2}).loss == 3);
  CHECK_FALSE(session.should_stop());
}

TEST_CASE("a save under way that fails for good ends the call: there is nothing newer to go back to", "[session][recovery]") {
  sw::test::log_capture log;
  gated_rig rig;
  auto session = rig.start_saving_every(1, attempts_hook{});
  wait_for_saves(session);
  rig.gate->close();
  session.run(std::int64_t{1});
  static_cast<void>(session.hook<sw::checkpoint_saver_hook>().saver());  // begins the save, as the next operation of the session does
  rig.gate->wait_for_somebody();
  rig.files->inject({.kind = operation::write, .path_contains = ".data-", .errno_value = ENOSPC});
  rig.model.before = failing_batches{{2}};
  {
    const once_waiting opener(rig.clock, [&] { rig.gate->open(); });
    CHECK_THROWS_AS(session.run(std::int64_t{2}), sw::resource_exhausted_error);
  }
  CHECK(session.hook<attempts_hook>().failures.size() == 2);
  CHECK(session.should_stop());
  CHECK(session.run(std::int64_t{2}).loss == 2);  // there is space again; the session continues from step 0
  CHECK(session.global_step() == 1);
}

TEST_CASE("D-4 damage met in a recovery means the checkpoint before it", "[session][recovery]") {
  sw::test::log_capture log;
  recovery_rig rig;
  auto session = rig.start_saving_every(1);
  run_until(session, 3);
  wait_for_saves(session);
  std::filesystem::resize_file(rig.directory.path() + "/model.ckpt-3.data-00000-of-00001", 3);
  rig.model.before = failing_batches{{4}};
  session.run(std::int64_t{4});
  CHECK(session.global_step() == 3);  // one step after the restored step 2
  CHECK(session.restored_from() == rig.directory.path() + "/model.ckpt-2");
}

TEST_CASE("the copy of the start is let go once a checkpoint takes its place", "[session][recovery]") {
  sw::test::log_capture log;
  recovery_rig rig;
  rig.setup.restores_what_it_saves = GENERATE(true, false);
  bool is_hidden = false;
  auto saver = rig.saver_hook(1);
  auto setup = rig.setup;
  setup.find_checkpoint = [&is_hidden, find = saver.checkpoint_finder()] { return is_hidden ? std::nullopt : find(); };
  sw::monitored_session session(setup, rig.model, std::move(saver));
  run_until(session, 1);
  wait_for_saves(session);
  run_until(session, 2);
  is_hidden = true;
  rig.model.before = failing_batches{{3}};
  if (rig.setup.restores_what_it_saves) {
    CHECK_THROWS_WITH(session.run(std::int64_t{3}), ContainsSubstring("its initial state was not kept"));
  } else {
    CHECK(session.run(std::int64_t{3}).loss == 3);
  }
}

TEST_CASE("a session that cannot be made anew is closed like any other: its directory is free, its event file whole",
          "[session][recovery]") {
  sw::test::log_capture log;
  recovery_rig rig;
  rig.setup.options.retry.max_attempts = 2;
  auto saver = rig.saver_hook(2);
  bool is_away = false;
  auto setup = rig.setup;
  setup.find_checkpoint = [&is_away, find = saver.checkpoint_finder()] {
    if (is_away) { throw sw::unavailable_error("the disk is away"); }
    return find();
  };
  sw::monitored_session session(setup, rig.model, std::move(saver));
  run_until(session, 3);
  rig.model.before = failing_batches{{4}};
  is_away = true;
  CHECK_THROWS_WITH(session.run(std::int64_t{4}), ContainsSubstring("the disk is away"));
  CHECK(log.contains(sw::log_level::warning, "batch 4 is lost on the way"));  // the original failure
  session.close();
  CHECK(log.contains(sw::log_level::warning, "recovery has not succeeded"));  // the reason why step 3 is not saved
  CHECK(rig.steps() == "0 2");
  adding_model other;
  auto next = sw::monitored_training_session(other, {.checkpoint_dir = rig.directory.path()});  // while the closed session still exists
  CHECK(next.global_step() == 2);
  CHECK(same(other, model_after(2)));
}
