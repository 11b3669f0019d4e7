// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"

#include <stepwell/base/cadence.hpp>

#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <thread>

namespace sw = stepwell;
using namespace std::chrono_literals;

namespace {

sw::second_or_step_timer every_steps(std::int64_t steps) {
  return sw::second_or_step_timer({.every_steps = steps}, std::make_shared<sw::manual_clock>());
}

}  // namespace

TEST_CASE("HOOK-TIMER-1: a timer of neither seconds nor steps is refused", "[base][cadence]") {
  CHECK_THROWS_AS(sw::second_or_step_timer(sw::cadence{}), sw::invalid_argument_error);
}

TEST_CASE("HOOK-TIMER-2: a timer of both seconds and steps is refused, whatever their values", "[base][cadence]") {
  CHECK_THROWS_AS(sw::second_or_step_timer({.every_secs = 1s, .every_steps = 1}), sw::invalid_argument_error);
  CHECK_THROWS_AS(sw::second_or_step_timer({.every_secs = 0s, .every_steps = 0}), sw::invalid_argument_error);
}

TEST_CASE("HOOK-TIMER-3: a timer that never triggered triggers at any step", "[base][cadence]") {
  const auto timer = every_steps(10);
  CHECK(timer.should_trigger_for_step(0));
  CHECK(timer.should_trigger_for_step(7));
  CHECK(timer.should_trigger_for_step(-3));
}

TEST_CASE("HOOK-TIMER-3: in steps mode the next trigger is a period after the last, or later", "[base][cadence]") {
  auto timer = every_steps(3);
  timer.update_last_triggered_step(5);
  CHECK_FALSE(timer.should_trigger_for_step(5));
  CHECK_FALSE(timer.should_trigger_for_step(6));
  CHECK_FALSE(timer.should_trigger_for_step(7));
  CHECK(timer.should_trigger_for_step(8));
  CHECK(timer.should_trigger_for_step(1000));
}

TEST_CASE("HOOK-TIMER-3: the step that triggered last does not trigger again, however short the period", "[base][cadence]") {
  auto timer = every_steps(0);
  timer.update_last_triggered_step(5);
  CHECK_FALSE(timer.should_trigger_for_step(5));
  CHECK(timer.should_trigger_for_step(6));
  auto backwards = every_steps(-2);
  backwards.update_last_triggered_step(5);
  CHECK_FALSE(backwards.should_trigger_for_step(5));
  CHECK(backwards.should_trigger_for_step(3));
  CHECK_FALSE(backwards.should_trigger_for_step(2));
}

TEST_CASE("HOOK-TIMER-3: in seconds mode it triggers once the period has passed, but not for the same step", "[base][cadence]") {
  const auto clock = std::make_shared<sw::manual_clock>();
  sw::second_or_step_timer timer({.every_secs = 2s}, clock);
  CHECK(timer.should_trigger_for_step(1));
  timer.update_last_triggered_step(1);
  CHECK_FALSE(timer.should_trigger_for_step(2));
  clock->advance(1999ms);
  CHECK_FALSE(timer.should_trigger_for_step(2));
  clock->advance(1ms);
  CHECK(timer.should_trigger_for_step(2));
  CHECK_FALSE(timer.should_trigger_for_step(1));
  timer.update_last_triggered_step(2);
  CHECK_FALSE(timer.should_trigger_for_step(3));
  clock->advance(2s);
  CHECK(timer.should_trigger_for_step(3));
}

TEST_CASE("HOOK-TIMER-3: a trigger taken before its time starts the period anew", "[base][cadence]") {
  const auto clock = std::make_shared<sw::manual_clock>();
  sw::second_or_step_timer timer({.every_secs = 2s}, clock);
  timer.update_last_triggered_step(1);
  clock->advance(1s);
  timer.update_last_triggered_step(2);
  clock->advance(1s);
  CHECK_FALSE(timer.should_trigger_for_step(3));
  clock->advance(1s);
  CHECK(timer.should_trigger_for_step(3));
  CHECK(clock->pending() == 0);
}

TEST_CASE("a period of no seconds triggers at every other step, time standing still", "[base][cadence]") {
  for (const auto seconds : {0.0, -1.0}) {
    sw::second_or_step_timer timer({.every_secs = std::chrono::duration<double>(seconds)}, std::make_shared<sw::manual_clock>());
    timer.update_last_triggered_step(1);
    CHECK_FALSE(timer.should_trigger_for_step(1));
    CHECK(timer.should_trigger_for_step(2));
  }
}

TEST_CASE("a period too long for any clock never passes", "[base][cadence]") {
  const auto clock = std::make_shared<sw::manual_clock>();
  for (const auto seconds : {1e12, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    sw::second_or_step_timer timer({.every_secs = std::chrono::duration<double>(seconds)}, clock);
    CHECK(timer.should_trigger_for_step(1));
    timer.update_last_triggered_step(1);
    CHECK(clock->pending() == 0);
    CHECK_FALSE(timer.should_trigger_for_step(2));
  }
  auto timer = every_steps(std::numeric_limits<std::int64_t>::max());
  timer.update_last_triggered_step(5);
  CHECK_FALSE(timer.should_trigger_for_step(6));
}

TEST_CASE("HOOK-TIMER-4: an update returns seconds and steps since the previous one; the first returns nothing", "[base][cadence]") {
  const auto clock = std::make_shared<sw::manual_clock>();
  for (const bool in_steps : {true, false}) {
    const auto period = in_steps ? sw::cadence{.every_steps = 10} : sw::cadence{.every_secs = 10s};
    sw::second_or_step_timer timer(period, clock);
    CHECK_FALSE(timer.update_last_triggered_step(4));
    clock->advance(1500ms);
    const auto elapsed = timer.update_last_triggered_step(9);
    REQUIRE(elapsed);
    CHECK(elapsed->seconds.count() == Approx(1.5));
    CHECK(elapsed->steps == 5);
  }
}

TEST_CASE("HOOK-TIMER-5: the last triggered step is known until the reset", "[base][cadence]") {
  const auto clock = std::make_shared<sw::manual_clock>();
  for (const bool in_steps : {true, false}) {
    const auto period = in_steps ? sw::cadence{.every_steps = 10} : sw::cadence{.every_secs = 10s};
    sw::second_or_step_timer timer(period, clock);
    CHECK_FALSE(timer.last_triggered_step());
    timer.update_last_triggered_step(4);
    CHECK(timer.last_triggered_step() == 4);
    timer.reset();
    CHECK_FALSE(timer.last_triggered_step());
    CHECK(timer.should_trigger_for_step(4));
    CHECK(clock->pending() == 0);
    CHECK_FALSE(timer.update_last_triggered_step(5));
  }
}

TEST_CASE("HOOK-TIMER-5: a lower step is legal and does not trigger in steps mode", "[base][cadence]") {
  auto timer = every_steps(5);
  timer.update_last_triggered_step(100);
  CHECK_FALSE(timer.should_trigger_for_step(50));
  const auto elapsed = timer.update_last_triggered_step(50);
  REQUIRE(elapsed);
  CHECK(elapsed->steps == -50);
  CHECK(timer.should_trigger_for_step(55));
}

TEST_CASE("HOOK-TIMER-6: a timer made of nothing never triggers", "[base][cadence]") {
  sw::second_or_step_timer timer;
  CHECK(timer.never_triggers());
  CHECK_FALSE(timer.should_trigger_for_step(0));
  CHECK_FALSE(timer.update_last_triggered_step(1));
  CHECK_FALSE(timer.last_triggered_step());
  timer.reset();
  CHECK_FALSE(timer.should_trigger_for_step(2));
  CHECK_FALSE(every_steps(1).never_triggers());
}

TEST_CASE("HOOK-TIMER-7: a timer that is moved keeps its time, one that dies leaves no alarm", "[base][cadence]") {
  const auto clock = std::make_shared<sw::manual_clock>();
  {
    sw::second_or_step_timer first({.every_secs = 2s}, clock);
    first.update_last_triggered_step(1);
    sw::second_or_step_timer second = std::move(first);
    CHECK(clock->pending() == 1);
    clock->advance(2s);
    CHECK(second.should_trigger_for_step(2));
    second.update_last_triggered_step(2);
    second = sw::second_or_step_timer({.every_secs = 2s}, clock);
    CHECK(clock->pending() == 0);
    second.update_last_triggered_step(3);
  }
  CHECK(clock->pending() == 0);
}

TEST_CASE("a timer may be asked while another thread moves the clock", "[base][cadence]") {
  const auto clock = std::make_shared<sw::manual_clock>();
  sw::second_or_step_timer timer({.every_secs = 1ms}, clock);
  std::thread mover([&] {
    for (int i = 0; i < 500; ++i) { clock->advance(1ms); }
  });
  std::int64_t triggers = 0;
  for (std::int64_t step = 0; step < 20'000; ++step) {
    if (timer.should_trigger_for_step(step)) {
      timer.update_last_triggered_step(step);
      ++triggers;
    }
  }
  mover.join();
  CHECK(triggers >= 1);
  CHECK(triggers <= 502);
}
