// SPDX-License-Identifier: Apache-2.0
//
// Tests of a preemption whose grace of 1 s is used up before the state is saved, on a manual clock.
#include "support/catch.hpp"
#include "support/gate.hpp"
#include "support/log_capture.hpp"
#include "support/once_waiting.hpp"
#include "support/session_rig.hpp"
#include "support/signalling_hook.hpp"

#include <stepwell/base/error.hpp>

#include <csignal>
#include <cstdint>
#include <memory>
#include <string>

namespace sw = stepwell;
using namespace std::chrono_literals;
using sw::test::operation;
using sw::test::session_rig;
using sw::test::signalling_hook;

namespace {

/// Returns options with a grace of 1 s after SIGURG, in which only the first and the last state are saved.
sw::test::adding_options preemptible(const session_rig& rig) {
  auto made = rig.options();
  made.save_checkpoint_steps = 100;
  made.stop_on = {SIGURG};
  made.preemption_grace = 1s;
  return made;
}

/// A hook that takes 10 s after the signal, in the run of step `at` or in `end`.
struct slow_hook {
  static constexpr auto phase = sw::hook_phase::guard;
  std::shared_ptr<sw::manual_clock> clock;
  std::int64_t at = -1;
  std::shared_ptr<sw::session_signals> signals = nullptr;

  void after_create_session(auto& session, auto&) { signals = session.signals(); }
  void after_run(auto& context, const auto&) {
    if (context.global_step() == at) { clock->advance(10s); }
  }
  void end(auto&) {
    if (at >= 0) { return; }
    ::raise(SIGURG);
    signals->wait_for_stop(*sw::system_clock(), sw::clock::time_point::max());
    clock->advance(10s);
  }
};

}  // namespace

TEST_CASE("a hook that takes longer than the grace does not prevent the save after it", "[training][preemption]") {
  const sw::test::log_capture log;
  session_rig rig;
  const bool is_in_run = GENERATE(true, false);
  auto session = sw::monitored_training_session(rig.model, preemptible(rig), signalling_hook{is_in_run ? 3 : -1},
                                                slow_hook{rig.clock, is_in_run ? 3 : -1});
  const auto before = rig.clock->now();
  sw::test::run_until(session, 3);
  session.close();
  CHECK(rig.steps() == "0 3");
  CHECK(rig.clock->now() - before == 10s);
  CHECK(session.stop_reason().text.find("the state is saved") != std::string::npos);
}

TEST_CASE("a save after the end of the grace may take one more grace", "[training][preemption]") {
  const sw::test::log_capture log;
  session_rig rig;
  sw::test::gate door;
  rig.files->before_each([&](const sw::test::event& asked) {
    if (asked.kind == operation::write && asked.path.find("model.ckpt-3") != std::string::npos) { door.pass(); }
  });
  door.close();
  {
    auto session = sw::monitored_training_session(rig.model, preemptible(rig), signalling_hook{3}, slow_hook{rig.clock, 3});
    sw::test::run_until(session, 3);
    const auto before = rig.clock->now();
    const sw::test::once_waiting mover(rig.clock, [&] { rig.clock->advance(1s); });
    CHECK_THROWS_AS(session.close(), sw::deadline_exceeded_error);
    CHECK(rig.clock->now() - before == 1s);
  }
  door.open();
  rig.pool->join();
  CHECK(rig.steps() == "0 3");
}
