// SPDX-License-Identifier: Apache-2.0
//
// Tests of the number of retries and of the backoff (decision D-2). Only the test moves the clock.
#include "support/catch.hpp"
#include "support/log_capture.hpp"
#include "support/once_waiting.hpp"
#include "support/recording_hook.hpp"
#include "support/recovery_rig.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace sw = stepwell;
using namespace sw::test;
using namespace std::chrono_literals;

namespace {

/// A callable that throws in every call, with the number of the call.
struct always_failing {
  std::atomic<int>* calls;
  void operator()(std::int64_t) const { throw sw::unavailable_error("failure " + std::to_string(++*calls)); }
};

}  // namespace

TEST_CASE("D-2 waits double up to a limit, and each is shortened by a random share", "[session][retry]") {
  const sw::retry_policy plain{.jitter = 0};
  CHECK(sw::backoff_of(plain, 1, 0) == 100ms);
  CHECK(sw::backoff_of(plain, 2, 1) == 200ms);
  CHECK(sw::backoff_of(plain, 5, 9) == 1600ms);
  CHECK(sw::backoff_of(plain, 10, 9) == 30s);
  CHECK(sw::backoff_of(plain, 100'000, 9) == 30s);
  const sw::retry_policy spread;
  std::set<sw::clock::duration> seen;
  for (std::uint64_t draw = 0; draw < 100; ++draw) {
    const auto wait = sw::backoff_of(spread, 3, draw);
    CHECK(wait > 200ms);
    CHECK(wait <= 400ms);
    CHECK(wait == sw::backoff_of(spread, 3, draw));  // the same run has the same backoff
    seen.insert(wait);
  }
  CHECK(seen.size() == 100);
  CHECK(sw::backoff_of({.seed = 1}, 3, 0) != sw::backoff_of({.seed = 2}, 3, 0));
  CHECK(sw::backoff_of({.max_backoff = 1e300, .multiplier = 1e10, .jitter = 0}, 1000, 0) > 24h * 364);  // the limit of the clock
}

TEST_CASE("D-2 a policy that makes no sense is refused, naming what", "[session][retry]") {
  const auto refusal = [](const sw::retry_policy& policy) {
    adding_model model;
    auto options = at_once();
    options.retry = policy;
    try {
      sw::monitored_session session(options, model);
    } catch (const sw::invalid_argument_error& refused) { return std::string(refused.what()); }
    return std::string();
  };
  CHECK_THAT(refusal({.max_attempts = -1}), ContainsSubstring("max_attempts is -1"));
  CHECK_THAT(refusal({.initial_backoff = -0.5}), ContainsSubstring("initial_backoff is -0.5"));
  CHECK_THAT(refusal({.max_backoff = -1}), ContainsSubstring("max_backoff"));
  CHECK_THAT(refusal({.multiplier = 0.5}), ContainsSubstring("multiplier is 0.5"));
  CHECK_THAT(refusal({.jitter = 1.5}), ContainsSubstring("jitter is 1.5"));
}

TEST_CASE("D-2 REC-5 the session waits as long as the policy says, on its own clock", "[session][retry]") {
  sw::test::log_capture log;
  adding_model model;
  std::atomic<int> calls = 0;
  const auto clock = std::make_shared<sw::manual_clock>();
  const sw::retry_policy policy{.initial_backoff = 4, .max_backoff = 10, .seed = 3};
  model.before = [&, fails = failing<sw::unavailable_error>(3)](std::int64_t) mutable {
    ++calls;
    fails();
  };
  sw::monitored_session session({.retry = policy, .clock = clock}, model);
  std::vector<bool> held_back;
  std::thread mover([&] {
    for (int attempt = 1; attempt <= 3; ++attempt) {
      const auto wait = sw::backoff_of(policy, attempt, static_cast<std::uint64_t>(attempt - 1));
      while (!clock->wait_for_pending(1)) {}
      clock->advance(wait - 1ns);
      held_back.push_back(clock->wait_for_pending(1) && calls == attempt);
      clock->advance(1ns);
    }
  });
  session.run(std::int64_t{1});
  mover.join();
  CHECK(held_back == std::vector<bool>{true, true, true});
  CHECK(calls == 4);
  CHECK(session.metrics().recoveries == 3);
  CHECK(session.metrics().creations == 4);
  CHECK(log.contains(sw::log_level::warning, "recovery 3 of at most 10"));
}

TEST_CASE("D-2 after the last attempt the last failure is thrown; all were reported to hooks and counted", "[session][retry]") {
  sw::test::log_capture log;
  adding_model model;
  std::atomic<int> calls = 0;
  model.before = always_failing{&calls};
  auto options = at_once();
  options.retry.max_attempts = 3;
  sw::monitored_session session(options, model, attempts_hook{});
  CHECK_THROWS_WITH(session.run(std::int64_t{1}), ContainsSubstring("failure 4"));
  CHECK(session.hook<attempts_hook>().attempts == std::vector<int>{1, 2, 3, 4});
  CHECK(session.hook<attempts_hook>().failures.size() == 4);
  CHECK(session.metrics().recoveries == 3);
  CHECK(log.contains(sw::log_level::error, "giving up after 3 recoveries"));
  CHECK(session.should_stop());
  CHECK(session.stop_reason().cause == sw::stop_cause::error);
  CHECK_THAT(session.stop_reason().text, ContainsSubstring("failure 4"));

  model.before = nullptr;
  CHECK(session.run(std::int64_t{2}).loss == 2);  // a caller may still continue: a new session is created
  CHECK_FALSE(session.should_stop());
  CHECK(session.stop_reason().cause == sw::stop_cause::none);
  CHECK(session.metrics().recoveries == 4);
}

TEST_CASE("D-2 a first creation gives up, too, and throws the last failure", "[session][retry]") {
  sw::test::log_capture log;
  adding_model model;
  int tries = 0;
  const auto never_ready = std::make_shared<sw::scaffold<adding_model>>(
      sw::scaffold_options<adding_model>{.init_op = [&](adding_model&) { throw sw::unavailable_error("try " + std::to_string(++tries)); }});
  auto options = at_once();
  options.retry.max_attempts = 4;
  CHECK_THROWS_WITH(sw::monitored_session(options, sw::chief_session_creator(model, never_ready)), ContainsSubstring("try 5"));
}

TEST_CASE("D-2 only a step that was not done before is progress", "[session][retry]") {
  sw::test::log_capture log;
  adding_model model;
  auto options = at_once();
  options.retry.max_attempts = 2;
  std::vector<std::int64_t> seen;
  counting_source source;

  model.before = failing_batches{{1, 2, 3, 4, 5, 5}, &seen};  // more failures than attempts, but with new steps between them
  {
    sw::monitored_session session(options, model, sw::stop_at_step_hook{{.last_step = 6}});
    for ([[maybe_unused]] const auto& step : session.steps(source)) {}
    CHECK(session.global_step() == 6);
    CHECK(model.sum == 21);
    CHECK(session.metrics().recoveries == 6);
  }

  adding_model other;  // steps 1 and 2 are repeated, step 3 is never reached
  seen.clear();
  other.before = failing_batches{{3, 3, 3, 3, 3}, &seen};
  counting_source again;
  sw::monitored_session session(options, other);
  CHECK_THROWS_AS(
      [&] {
        for ([[maybe_unused]] const auto& step : session.steps(again)) {}
      }(),
      sw::aborted_error);
  CHECK(seen == std::vector<std::int64_t>{1, 2, 3, 1, 2, 3, 1, 2, 3});
}

TEST_CASE("D-2 D-12 a stop during the wait ends the wait: the call is done, the loop is over", "[session][retry]") {
  sw::test::log_capture log;
  adding_model model;
  const auto clock = std::make_shared<sw::manual_clock>();
  const bool is_loop = GENERATE(false, true);
  model.before = failing_batches{{2}};
  sw::monitored_session session({.retry = {.initial_backoff = 3600, .max_backoff = 3600}, .clock = clock}, model);
  session.run(std::int64_t{1});
  counting_source source{.next = 2};
  {
    const once_waiting stopper(clock, [&] { session.request_stop("enough"); });
    if (is_loop) {
      for ([[maybe_unused]] const auto& step : session.steps(source)) { FAIL("a step after the stop"); }
    } else {
      CHECK(session.run(std::int64_t{2}).batch == 2);
    }
  }
  CHECK(session.should_stop());
  CHECK(session.stop_reason().text == "enough");
  CHECK(session.global_step() == (is_loop ? 0 : 1));
  CHECK(clock->now() == sw::manual_clock().now());  // the clock has not moved
  session.close();
}

TEST_CASE("D-2 after a stop was requested, a second failure is thrown without a wait", "[session][retry]") {
  sw::test::log_capture log;
  adding_model model;
  std::atomic<int> calls = 0;
  model.before = always_failing{&calls};
  sw::monitored_session session({.clock = std::make_shared<sw::manual_clock>()}, model);
  session.request_stop();
  CHECK_THROWS_WITH(session.run(std::int64_t{1}), ContainsSubstring("failure 2"));
  CHECK(session.metrics().recoveries == 1);
}
