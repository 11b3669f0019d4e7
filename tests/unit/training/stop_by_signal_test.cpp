// SPDX-License-Identifier: Apache-2.0
//
// Tests of signals that stop a training session. SIGURG, which does nothing by default, takes the place of signals that
// end a process.
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
#include <thread>

namespace sw = stepwell;
using namespace std::chrono_literals;
using sw::test::adding_options;
using sw::test::counting_source;
using sw::test::operation;
using sw::test::session_rig;
using sw::test::signalling_hook;

namespace {

struct rejecting_hook {
  void after_run(auto& context, const auto&) { context.reject_state("a test says so"); }
};
/// A hook that throws after the session has noticed the stop request.
struct failing_hook {
  static constexpr auto phase = sw::hook_phase::guard;
  void after_run(auto& context, const auto&) {
    if (context.stop_requested()) { throw sw::aborted_error("once"); }
  }
};

sw::test::adding_options stoppable(const session_rig& rig) {
  auto made = rig.options();
  made.saves.save_steps = 100;
  made.stop_on = {SIGURG, SIGWINCH};
  return made;
}

bool is_left_alone(int signal) {
  struct sigaction now{};
  ::sigaction(signal, nullptr, &now);
  return now.sa_handler == SIG_DFL;
}

}  // namespace

TEST_CASE("a signal of stop_on ends the loop after the step under way, and is the reason", "[training][signals]") {
  const sw::test::log_capture log;
  session_rig rig;
  auto session = sw::monitored_training_session(rig.model, stoppable(rig), signalling_hook{3});
  CHECK_FALSE(is_left_alone(SIGURG));
  counting_source source;
  std::int64_t last = 0;
  for (const auto& step : session.steps(source)) { last = step.global_step; }
  CHECK(last == 3);
  CHECK(session.stop_reason().cause == sw::stop_cause::signal);
  CHECK(session.stop_reason().text == "the process was sent SIGURG");
  session.close();
  CHECK(log.contains(sw::log_level::info, "the process was sent SIGURG; the session stops after the step that is running"));
  CHECK(rig.steps() == "0 3");
  CHECK_FALSE(session.metrics().preemption);
}

TEST_CASE("the state is saved at the boundary after the signal, not only at the end", "[training][signals]") {
  const sw::test::log_capture log;
  session_rig rig;
  auto session = sw::monitored_training_session(rig.model, stoppable(rig), signalling_hook{3});
  sw::test::run_until(session, 3);
  sw::test::wait_for_saves(session);
  CHECK(rig.steps() == "0 3");
  sw::test::run_until(session, 4);  // a caller may continue after a stop by a signal
  session.close();
  CHECK(rig.steps() == "0 3 4");
}

TEST_CASE("a step saved already is not saved again for a signal", "[training][signals]") {
  const sw::test::log_capture log;
  session_rig rig;
  auto options = stoppable(rig);
  options.saves.save_steps = 3;
  auto session = sw::monitored_training_session(rig.model, options, signalling_hook{3});
  sw::test::run_until(session, 3);
  session.close();
  CHECK(rig.steps() == "0 3");
  CHECK(session.metrics().saves == 2);
}

TEST_CASE("a state found bad is not saved for a signal either", "[training][signals]") {
  const sw::test::log_capture log;
  session_rig rig;
  auto session = sw::monitored_training_session(rig.model, stoppable(rig), rejecting_hook{}, signalling_hook{1});
  sw::test::run_until(session, 1);
  session.close();
  CHECK(rig.steps() == "0");
}

TEST_CASE("signals are the program's again once a session is left, in whatever way", "[training][signals]") {
  const sw::test::log_capture log;
  session_rig rig;
  const auto way = GENERATE(std::string("close"), std::string("abandon"), std::string("drop"), std::string("fail"));
  CAPTURE(way);
  if (way == "fail") {
    struct never_begins {
      void begin() { throw sw::unknown_error("no beginning"); }
    };
    CHECK_THROWS_AS(sw::monitored_training_session(rig.model, stoppable(rig), never_begins{}), sw::unknown_error);
    CHECK(is_left_alone(SIGURG));
    return;
  }
  {
    auto session = sw::monitored_training_session(rig.model, stoppable(rig));
    CHECK_FALSE(is_left_alone(SIGURG));
    if (way == "close") { session.close(); }
    if (way == "abandon") { session.abandon(nullptr); }
    if (way != "drop") {
      CHECK(is_left_alone(SIGURG));
      CHECK(is_left_alone(SIGWINCH));
    }
  }
  CHECK(is_left_alone(SIGURG));
}

TEST_CASE("sessions of one process that ask for one signal all stop", "[training][signals]") {
  const sw::test::log_capture log;
  session_rig one;
  session_rig two;
  auto waiting = sw::monitored_training_session(two.model, stoppable(two));
  auto session = sw::monitored_training_session(one.model, stoppable(one), signalling_hook{2});
  sw::test::run_until(session, 2);
  session.close();
  while (!waiting.should_stop()) { std::this_thread::yield(); }
  waiting.close();
  CHECK(waiting.stop_reason().cause == sw::stop_cause::signal);
}

TEST_CASE("a signal during a recovery ends it, and what was restored is not saved again", "[training][signals]") {
  const sw::test::log_capture log;
  session_rig rig;
  auto options = stoppable(rig);
  options.saves.save_steps = 1;
  auto session = sw::monitored_training_session(rig.model, options, failing_hook{}, signalling_hook{2});
  counting_source source;
  for ([[maybe_unused]] const auto& step : session.steps(source)) {}
  session.close();
  CHECK(session.stop_reason().cause == sw::stop_cause::signal);
  CHECK(rig.steps() == "0 1");
  CHECK(session.metrics().saves == 2);
}

TEST_CASE("signals that cannot be caught, and a grace without a signal, are refused", "[training][signals]") {
  session_rig rig;
  auto options = rig.options();
  options.stop_on = {SIGKILL};
  CHECK_THROWS_AS(sw::monitored_training_session(rig.model, options), sw::invalid_argument_error);
  options.stop_on = {};
  options.preemption_grace = 30s;
  CHECK_THROWS_WITH(sw::monitored_training_session(rig.model, options), ContainsSubstring("stop_on"));
}

namespace {

/// A rig in which each save advances the clock by `save_time`.
struct timed_rig : session_rig {
  explicit timed_rig(sw::clock::duration save_time) {
    files->before_each([time = clock, save_time](const sw::test::event& asked) {
      if (asked.kind == operation::rename && asked.path.find(".index") != std::string::npos) { time->advance(save_time); }
    });
  }
  adding_options preemptible(sw::clock::duration grace) const {
    auto made = stoppable(*this);
    made.preemption_grace = grace;
    return made;
  }
};

}  // namespace

TEST_CASE("within its grace a preempted session saves what fits, and says so", "[training][signals][preemption]") {
  sw::test::log_capture log;
  timed_rig rig(4s);
  const bool fits = GENERATE(true, false);
  auto session = sw::monitored_training_session(rig.model, rig.preemptible(fits ? 10s : 2s), signalling_hook{3});
  sw::test::wait_for_saves(session);  // the save of step 0 is measured now
  sw::test::run_until(session, 3);
  session.close();
  CAPTURE(session.stop_reason().text);
  CHECK(rig.steps() == (fits ? "0 3" : "0"));
  REQUIRE(session.metrics().preemption);
  CHECK(session.metrics().preemption->choice == (fits ? sw::preemption_choice::save : sw::preemption_choice::leave));
  const std::string said = fits ? "step 3: the state is saved: " : "step 3: no new save is started: ";
  CHECK(session.stop_reason().cause == sw::stop_cause::signal);
  CHECK(session.stop_reason().text.starts_with("the process was sent SIGURG; " + said));
  CHECK(log.contains(fits ? sw::log_level::info : sw::log_level::warning, "the process is about to end; " + said));
}

TEST_CASE("without a measured save a preempted session saves, whatever its grace", "[training][signals][preemption]") {
  sw::test::log_capture log;
  session_rig rig;  // the clock stands still, so a save takes no time
  auto options = stoppable(rig);
  options.preemption_grace = 1s;
  auto session = sw::monitored_training_session(rig.model, options, signalling_hook{3});
  sw::test::run_until(session, 3);
  session.close();
  CHECK(rig.steps() == "0 3");
  CHECK(session.stop_reason().text.find("no save was measured") != std::string::npos);
}

TEST_CASE("a preempted session waits for its disk no longer than its grace", "[training][signals][preemption]") {
  sw::test::log_capture log;
  session_rig rig;
  sw::test::gate gate;
  rig.files->before_each([&](const sw::test::event& asked) {
    if (asked.kind == operation::write && asked.path.find("model.ckpt-3") != std::string::npos) { gate.pass(); }
  });
  gate.close();
  auto options = stoppable(rig);
  options.preemption_grace = 20s;
  {
    auto session = sw::monitored_training_session(rig.model, options, signalling_hook{3});
    sw::test::run_until(session, 3);
    const auto before = rig.clock->now();
    const sw::test::once_waiting mover(rig.clock, [&] { rig.clock->advance(20s); });
    CHECK_THROWS_AS(session.close(), sw::deadline_exceeded_error);
    CHECK(rig.clock->now() - before == 20s);  // less than the 120 s of stop_grace_period_secs
  }
  gate.open();
  rig.pool->join();
}
