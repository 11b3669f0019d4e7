// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"
#include "support/leaping_clock.hpp"
#include "support/log_capture.hpp"

#include <stepwell/base/clock.hpp>
#include <stepwell/base/error.hpp>
#include <stepwell/hooks/global_step_waiter_hook.hpp>
#include <stepwell/model/model_session.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace sw = stepwell;
using namespace std::chrono_literals;
using sw::test::leaping_clock;

namespace {

/// The part of a session that the hook uses. Its global step follows a script.
struct scripted_session {
  std::shared_ptr<leaping_clock> clock = std::make_shared<leaping_clock>();
  std::vector<std::int64_t> steps;  // one for each call; the last one repeats
  mutable std::size_t looks = 0;
  bool stopped = false;
  std::string called = {};
  sw::coordinator threads{clock};

  std::shared_ptr<sw::clock> time() const { return clock; }
  const std::string& name() const { return called; }
  std::int64_t global_step() const {
    const auto step = steps[std::min(looks, steps.size() - 1)];
    ++looks;
    return step;
  }
  bool stop_requested() const { return stopped; }
  const scripted_session& raw_session() const { return *this; }

  void start(sw::global_step_waiter_hook& hook) {
    hook.begin();
    hook.after_create_session(*this, threads);
  }
};

/// A model that owns its global step. Others change it between two reads of the session.
struct shared_step_model {
  std::int64_t steps = 0;
  int runs = 0;
  int step() { return ++runs; }
  std::int64_t& global_step() { return steps; }
  sw::variable_list variables() { return {}; }
};

}  // namespace

TEST_CASE("HOOK-WAIT-1 HOOK-WAIT-3 without a step to wait for there is no wait", "[hooks][waiter]") {
  sw::test::log_capture log;
  for (const std::int64_t step : {0, -5}) {
    scripted_session session{.steps = {0}};
    sw::global_step_waiter_hook hook{{.wait_until_step = step}};
    session.start(hook);
    hook.before_run(session);
    CHECK(session.looks == 0);
  }
  CHECK(log.messages().empty());
}

TEST_CASE("HOOK-WAIT-1 HOOK-WAIT-3 the step is looked at every half second, until it is there", "[hooks][waiter]") {
  sw::test::log_capture log;
  scripted_session session{.steps = {0, 500, 1100}};
  sw::global_step_waiter_hook hook{{.wait_until_step = 1000}};
  session.start(hook);
  hook.before_run(session);
  CHECK(session.clock->waits == std::vector<sw::clock::duration>{500ms, 500ms});
  CHECK(session.looks == 3);
}

TEST_CASE("HOOK-WAIT-1 between two begins it waits once, also over a recovery", "[hooks][waiter]") {
  sw::test::log_capture log;
  scripted_session session{.steps = {10, 0}};
  sw::global_step_waiter_hook hook{{.wait_until_step = 10}};
  session.start(hook);
  hook.before_run(session);
  hook.after_create_session(session, session.threads);
  hook.before_run(session);
  CHECK(session.looks == 1);
  CHECK(session.clock->waits.empty());
  session.steps = {0, 0, 0, 10};
  session.start(hook);
  hook.before_run(session);
  CHECK(session.clock->waits.size() == 2);
}

TEST_CASE("HOOK-WAIT-2 the step is logged when the wait begins, and after each further 1000 steps", "[hooks][waiter]") {
  sw::test::log_capture log;
  scripted_session session{.steps = {0, 1000, 1001, 1500, 2001, 2002, 5000}};
  sw::global_step_waiter_hook hook{{.wait_until_step = 5000}};
  session.start(hook);
  hook.before_run(session);
  std::vector<std::string> lines;
  for (const auto& message : log.messages()) { lines.push_back(message.text); }
  CHECK(lines == std::vector<std::string>{"Waiting for global step 5000 before starting training.",
                                          "Waiting for global step 5000 before starting training. Current step is 1001.",
                                          "Waiting for global step 5000 before starting training. Current step is 2002."});
}

TEST_CASE("HOOK-WAIT-4 the wait can have a limit, and ends exactly then", "[hooks][waiter]") {
  sw::test::log_capture log;
  scripted_session session{.steps = {7}};
  sw::global_step_waiter_hook hook{{.wait_until_step = 1000, .max_wait_secs = 1.25}};
  session.start(hook);
  CHECK_THROWS_WITH(hook.before_run(session), ContainsSubstring("waited 1.25 s for global step 1000, but it is 7"));
  CHECK(session.clock->waits == std::vector<sw::clock::duration>{500ms, 500ms, 250ms});
  CHECK_THROWS_AS(hook.before_run(session), sw::deadline_exceeded_error);  // the session waits again
}

TEST_CASE("HOOK-WAIT-4 a stop ends the wait", "[hooks][waiter]") {
  sw::test::log_capture log;
  scripted_session session{.steps = {0}};
  sw::global_step_waiter_hook hook{{.wait_until_step = 1000}};
  session.start(hook);
  SECTION("of the session") { session.stopped = true; }
  SECTION("of its threads") { session.threads.request_stop(); }
  hook.before_run(session);
  CHECK(session.clock->waits.empty());
  CHECK(log.contains(sw::log_level::info, "asked to stop"));
}

TEST_CASE("HOOK-WAIT-1 a session's first run waits for others to make steps", "[hooks][waiter]") {
  sw::test::log_capture log;
  const auto clock = std::make_shared<sw::manual_clock>();
  shared_step_model model;
  sw::monitored_session session(sw::training_options{.clock = clock}, model, sw::global_step_waiter_hook{{.wait_until_step = 3}});
  std::thread others([&] {
    for (int i = 0; i < 3; ++i) {
      while (!clock->wait_for_pending(1)) {}  // now the session waits and does not read the step
      ++model.steps;
      clock->advance(500ms);
    }
  });
  session.run();
  others.join();
  CHECK(model.runs == 1);
  CHECK(model.steps == 3);
  session.run();
  CHECK(model.runs == 2);
}

TEST_CASE("HOOK-WAIT-4 a stop asked for meanwhile ends the wait of a session, and the run is made", "[hooks][waiter]") {
  sw::test::log_capture log;
  const auto clock = std::make_shared<sw::manual_clock>();
  shared_step_model model;
  sw::monitored_session session(sw::training_options{.clock = clock}, model, sw::global_step_waiter_hook{{.wait_until_step = 3}});
  std::thread another([&] {
    while (!clock->wait_for_pending(1)) {}
    session.request_stop();
    clock->advance(500ms);
  });
  session.run();
  another.join();
  CHECK(model.runs == 1);
  CHECK(session.should_stop());
}
