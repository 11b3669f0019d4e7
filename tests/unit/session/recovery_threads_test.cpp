// SPDX-License-Identifier: Apache-2.0
//
// Tests of failures reported by threads of a session, and of the layers between a run and its caller (contract WRAP,
// REC-3, REC-4).
#include "support/catch.hpp"
#include "support/log_capture.hpp"
#include "support/once_waiting.hpp"
#include "support/recording_hook.hpp"
#include "support/recovery_rig.hpp"

#include <stepwell/session/training_session.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace sw = stepwell;
using namespace sw::test;
using namespace std::chrono_literals;
using story_type = std::vector<std::string>;

namespace {

template<class Error>
std::exception_ptr failed_with(const std::string& why) {
  return std::make_exception_ptr(Error(why));
}
const std::string gone = "the thread lost its server";

/// Reports a failure like a thread of the session.
template<class Session>
void report(Session& session, const std::exception_ptr& failure) {
  session.template hook<coordinator_hook>().threads->request_stop(failure);
}

/// Makes one run fail, and reports the failure of a thread during that run.
template<class Error, class Session>
void fail_with_thread(adding_model& model, Session& session, const std::string& why, const std::exception_ptr& of_thread) {
  model.before = [&session, of_thread, fails = failing<Error>(1, why), times = 1](std::int64_t) mutable {
    if (times-- > 0) { report(session, of_thread); }
    fails();
  };
}

/// A hook that requests a stop in a run.
struct stopping_hook {
  std::int64_t before_step;
  void before_run(auto& context) {
    if (context.global_step() + 1 == before_step) { context.request_stop(); }
  }
};

}  // namespace

TEST_CASE("WRAP-2 WRAP-3 should_stop is true after the close, or after a stop was requested", "[session][recovery]") {
  adding_model model;
  {
    sw::monitored_session session(at_once(), model, stopping_hook{1});
    CHECK_FALSE(session.should_stop());
    session.run(std::int64_t{1});
    CHECK(session.should_stop());  // requested by a hook
  }
  {
    sw::monitored_session session(at_once(), model, coordinator_hook{});
    report(session, nullptr);
    CHECK(session.should_stop());  // requested by a thread
    CHECK_THAT(session.stop_reason().text, ContainsSubstring("a thread of the session asked to stop"));
  }
  sw::monitored_session session(at_once(), model);
  session.close();
  CHECK(session.should_stop());
}

TEST_CASE("WRAP-4 TL-5 REC-3 D-22 a thread's failure that may pass is no stop: the run after should_stop is one of a new session",
          "[session][recovery]") {
  sw::test::log_capture log;
  adding_model model;
  sw::monitored_session session(at_once(), model, coordinator_hook{}, attempts_hook{});
  report(session, failed_with<sw::aborted_error>(gone));
  CHECK(session.run(std::int64_t{1}).loss == 1);  // a successful run does not check the threads (contract REC-3)
  CHECK(session.hook<coordinator_hook>().creations == 1);
  CHECK_FALSE(session.should_stop());
  CHECK(session.stop_reason().cause == sw::stop_cause::none);
  CHECK(session.run(std::int64_t{5}).loss == 5);  // restored to the start, then one step
  CHECK(session.hook<coordinator_hook>().creations == 2);
  CHECK(session.hook<attempts_hook>().failures.size() == 1);  // on_error was called (decision D-2)
  CHECK(session.hook<attempts_hook>().attempts.back() == 1);
  CHECK(session.metrics().recoveries == 1);
  CHECK(log.contains(sw::log_level::warning, gone));  // logged (decision D-2)
  CHECK_FALSE(session.should_stop());
  CHECK_NOTHROW(session.close());
}

TEST_CASE("WRAP-4 a loop recovers from a thread's failure, and takes its source along", "[session][recovery]") {
  recovery_rig rig;
  auto session = rig.start_saving_every(2, coordinator_hook{});
  counting_source source;
  std::vector<std::int64_t> batches;
  for (const auto& step : session.steps(source)) {
    batches.push_back(step.value.batch);
    if (batches.size() == 3) { report(session, failed_with<sw::unavailable_error>(gone)); }
    if (step.global_step == 4) { break; }
  }
  CHECK(batches == std::vector<std::int64_t>{1, 2, 3, 3, 4});
}

TEST_CASE("WRAP-4 another failure of a thread ends the loop, and comes out of close", "[session][recovery]") {
  sw::test::log_capture log;
  adding_model model;
  sw::monitored_session session(at_once(), model, coordinator_hook{});
  report(session, failed_with<std::runtime_error>("the reader is out of memory"));
  CHECK(session.run(std::int64_t{1}).loss == 1);
  CHECK(session.should_stop());
  CHECK(session.stop_reason().cause == sw::stop_cause::error);
  CHECK(session.stop_reason().text == "the reader is out of memory");
  CHECK_THROWS_WITH(session.close(), "the reader is out of memory");
  CHECK(session.stop_reason().cause == sw::stop_cause::error);
}

TEST_CASE("WRAP-5 when a run fails, a thread's failure that may pass is the root, and is recovered from", "[session][recovery]") {
  sw::test::log_capture log;
  adding_model model;
  sw::monitored_session session(at_once(), model, coordinator_hook{});
  fail_with_thread<sw::out_of_range_error>(model, session, "the queue is closed", failed_with<sw::unavailable_error>(gone));
  const bool is_loop = GENERATE(false, true);
  if (is_loop) {
    int steps = 0;
    for ([[maybe_unused]] const auto& step : session.steps(std::vector<std::int64_t>{5})) { ++steps; }
    CHECK(steps == 1);
  } else {
    CHECK(session.run(std::int64_t{5}).loss == 5);
  }
  CHECK(session.hook<coordinator_hook>().creations == 2);
}

TEST_CASE("WRAP-5 without recovery, the failure of the thread is thrown", "[session][recovery]") {
  sw::test::log_capture log;
  adding_model model;
  auto options = at_once();
  options.retry.max_attempts = 0;
  model.before = failing<sw::out_of_range_error>(1, "the queue is closed");
  sw::monitored_session session(options, model, coordinator_hook{});
  report(session, failed_with<sw::unavailable_error>(gone));
  CHECK_THROWS_WITH(session.run(std::int64_t{5}), ContainsSubstring(gone));
  CHECK(session.hook<coordinator_hook>().creations == 1);
}

TEST_CASE("WRAP-5 the root is thrown, too, where the arguments of a run are used up", "[session][recovery]") {
  struct eating_model {
    void step(std::unique_ptr<int>) { throw sw::out_of_range_error("the queue is closed"); }
    sw::variable_list variables() { return {}; }
  };
  sw::test::log_capture log;
  eating_model model;
  auto options = at_once();
  if (GENERATE(true, false)) { options.retry.max_attempts = 0; }
  sw::monitored_session session(options, model, coordinator_hook{});
  report(session, failed_with<sw::unavailable_error>(gone));
  CHECK_THROWS_WITH(session.run(std::make_unique<int>(5)), ContainsSubstring(gone));
}

TEST_CASE("WRAP-5 after any other failure of a thread, the run fails with its own error", "[session][recovery]") {
  sw::test::log_capture log;
  adding_model model;
  model.before = failing<sw::unknown_error>(1, "the run's own");
  sw::monitored_session session(at_once(), model, coordinator_hook{});
  const bool is_reported = GENERATE(true, false);
  if (is_reported) { report(session, failed_with<std::runtime_error>("the thread's")); }
  CHECK_THROWS_WITH(session.run(std::int64_t{1}), ContainsSubstring("the run's own"));
  if (is_reported) { CHECK_THROWS_WITH(session.close(), "the thread's"); }
}

TEST_CASE("WRAP-6 a run that fails does not request a stop", "[session][recovery]") {
  adding_model model;
  model.before = failing<std::runtime_error>(1);
  sw::monitored_session session(at_once(), model, coordinator_hook{});
  CHECK_THROWS(session.run(std::int64_t{1}));
  CHECK_FALSE(session.should_stop());
  CHECK_FALSE(session.hook<coordinator_hook>().threads->should_stop());
  CHECK_NOTHROW(session.run(std::int64_t{1}));
}

TEST_CASE("WRAP-1 WRAP-7 REC-3 the raw session is closed in any case, and an exception of this is logged", "[session][close]") {
  sw::test::log_capture log;
  adding_model model;
  story_type story;
  const auto fails = GENERATE(
      std::function<void()>{}, [] { throw sw::aborted_error("cannot let go"); }, [] { throw std::runtime_error("cannot let go"); });
  const bool is_reported = GENERATE(false, true);
  {
    sw::monitored_session session(at_once(), closing_creator{model, &story, fails}, coordinator_hook{});
    if (is_reported) {
      report(session, failed_with<std::runtime_error>("the thread's"));
      CHECK_THROWS_WITH(session.close(), "the thread's");
    } else {
      CHECK_NOTHROW(session.close());
    }
    session.close();  // has no effect
    CHECK(story == story_type{"raw closed"});
  }
  CHECK(log.contains(sw::log_level::error, "cannot let go") == (fails != nullptr));
  story.clear();

  model.before = failing<sw::aborted_error>(1);  // a recovery closes the old session (contract REC-2)
  sw::monitored_session session(at_once(), closing_creator{model, &story, fails});
  session.run(std::int64_t{1});
  CHECK(story == story_type{"raw closed"});
  session.abandon(nullptr);
  CHECK(story == story_type{"raw closed", "raw closed"});
}

TEST_CASE("a raw session that was given is closed once, by whoever closes the session", "[session][close]") {
  adding_model model;
  story_type story;
  closing_raw raw(model);
  raw.story = &story;
  model.before = failing<sw::aborted_error>(1);
  sw::monitored_session session(at_once(), std::move(raw));
  session.run(std::int64_t{1});
  CHECK(story.empty());
  session.close();
  CHECK(story == story_type{"raw closed"});
}

TEST_CASE("WRAP-7 CLOSE-12 close requests the threads to stop and waits; a thread that does not end is only logged", "[session][close]") {
  sw::test::log_capture log;
  adding_model model;
  const auto clock = std::make_shared<sw::manual_clock>();
  const auto may_end = std::make_shared<std::promise<void>>();
  const auto ended = std::make_shared<std::promise<void>>();
  sw::monitored_session session({.stop_grace_period_secs = 30s, .clock = clock}, model, coordinator_hook{});
  auto& threads = *session.hook<coordinator_hook>().threads;
  threads.start_thread("laggard", [may_end, ended](std::stop_token) {
    may_end->get_future().wait();
    ended->set_value();
  });
  bool is_told = false;
  const std::stop_callback told(threads.get_token(), [&] { is_told = true; });
  {
    const once_waiting mover(clock, [&] { clock->advance(30s); });
    CHECK_NOTHROW(session.close());
  }
  CHECK(is_told);
  CHECK(log.contains(sw::log_level::warning, "threads still running: laggard"));
  may_end->set_value();
  ended->get_future().wait();
}

TEST_CASE("WRAP-8 threads are not joined after a run, and a stop that they request throws nothing", "[session][recovery]") {
  adding_model model;
  std::promise<void> may_end;
  sw::monitored_session session(at_once(), model, coordinator_hook{});
  auto& threads = *session.hook<coordinator_hook>().threads;
  threads.start_thread("busy", [&](std::stop_token) { may_end.get_future().wait(); });
  CHECK_NOTHROW(session.run(std::int64_t{1}));
  threads.request_stop();
  CHECK_NOTHROW(session.run(std::int64_t{1}));
  CHECK_FALSE(threads.joined());
  may_end.set_value();
}

TEST_CASE("WRAP-9 the exception that comes out is the very object that was thrown", "[session][recovery]") {
  sw::test::log_capture log;
  const auto thrown = failed_with<sw::aborted_error>("the one and only");
  const auto same_comes_out = [&](sw::training_options options, bool is_loop) {
    adding_model model;
    model.before = [&](std::int64_t) { std::rethrow_exception(thrown); };
    sw::monitored_session session(std::move(options), model);
    try {
      if (is_loop) {
        for ([[maybe_unused]] const auto& step : session.steps(std::vector<std::int64_t>{1})) {}
      } else {
        session.run(std::int64_t{1});
      }
    } catch (...) { return std::current_exception() == thrown; }
    return false;
  };
  auto never = at_once();
  never.retry.max_attempts = 0;
  for (const bool is_loop : {false, true}) {
    CHECK(same_comes_out(never, is_loop));
    CHECK(same_comes_out(at_once(), is_loop));  // the last failure, after ten attempts
  }
}

TEST_CASE("REC-4 a thread's failure that will not pass ends the call instead of a retry", "[session][recovery]") {
  sw::test::log_capture log;
  adding_model model;
  sw::monitored_session session(at_once(), model, coordinator_hook{}, attempts_hook{});
  fail_with_thread<sw::aborted_error>(model, session, "the run's own", failed_with<std::runtime_error>("the thread's"));
  const bool is_loop = GENERATE(false, true);
  if (is_loop) {
    CHECK_THROWS_WITH(
        [&] {
          for ([[maybe_unused]] const auto& step : session.steps(std::vector<std::int64_t>{1})) {}
        }(),
        "the thread's");
  } else {
    CHECK_THROWS_WITH(session.run(std::int64_t{1}), "the thread's");
  }
  CHECK(session.hook<attempts_hook>().failures.size() == 2);  // hooks receive both failures
  CHECK(session.should_stop());
  CHECK(session.stop_reason().text == "the thread's");
  SECTION("one more run makes a new session") {
    CHECK(session.run(std::int64_t{2}).loss == 2);
    CHECK(session.hook<coordinator_hook>().creations == 2);
    CHECK_FALSE(session.should_stop());
  }
  CHECK_NOTHROW(session.close());  // it was thrown once already
}

TEST_CASE("REC-8 D-12 a stop that was requested just before a recovery is kept", "[session][recovery]") {
  sw::test::log_capture log;
  adding_model model;
  const auto by = GENERATE(std::string("hook"), std::string("thread"), std::string("caller"));
  sw::monitored_session session(at_once(), model, stopping_hook{by == "hook" ? 2 : -1}, coordinator_hook{});
  model.before = [&, fails = failing_batches{{2}}](std::int64_t batch) mutable {
    if (batch == 2 && by == "thread") { report(session, nullptr); }
    if (batch == 2 && by == "caller") { session.request_stop(); }
    fails(batch);
  };
  SECTION("in a loop no step comes after the recovery") {
    counting_source source;
    int steps = 0;
    for ([[maybe_unused]] const auto& step : session.steps(source)) { ++steps; }
    CHECK(steps == 1);
    CHECK(session.global_step() == 0);
  }
  SECTION("a call is done, and the loop around it is over") {
    session.run(std::int64_t{1});
    CHECK(session.run(std::int64_t{2}).loss == 2);
  }
  CHECK(session.metrics().recoveries == 1);
  CHECK(session.should_stop());
  CHECK(session.stop_reason().cause == sw::stop_cause::requested);
}
