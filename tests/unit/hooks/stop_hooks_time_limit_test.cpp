// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"
#include "support/toy_model.hpp"

#include <stepwell/base/error.hpp>
#include <stepwell/hooks/stop_hooks.hpp>
#include <stepwell/model/model_session.hpp>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <utility>

namespace sw = stepwell;
using namespace std::chrono_literals;
using sw::test::counting_model;

namespace {

/// A manual clock that counts its reads.
class counting_clock final : public sw::clock {
public:
  mutable int reads = 0;
  sw::manual_clock held;

  [[nodiscard]] time_point now() const override {
    ++reads;
    return held.now();
  }
  [[nodiscard]] wall_time wall_now() const override {
    ++reads;
    return held.wall_now();
  }
  alarm_id call_at(time_point when, std::function<void()> action) override { return held.call_at(when, std::move(action)); }
  void cancel(alarm_id id) override { held.cancel(id); }
  using clock::wait_until;
  bool wait_until(std::unique_lock<std::mutex>& lock, std::condition_variable& condition, time_point when) override {
    return held.wait_until(lock, condition, when);
  }
};

}  // namespace

TEST_CASE("a time limit ends the loop after the step under way, with the deadline as the reason", "[hooks][time_limit]") {
  const auto clock = std::make_shared<sw::manual_clock>();
  counting_model model;
  sw::monitored_session session(sw::training_options{.clock = clock}, model, sw::time_limit_hook{10});
  for (const auto& step : session.steps()) { clock->advance(step.value <= 2 ? 4s : 2s); }
  CHECK(model.count == 3);
  CHECK(session.stop_reason().cause == sw::stop_cause::deadline);
  CHECK(session.stop_reason().text == "the time limit of 10 s is reached");
  session.run();  // as after any stop from outside, a further run is not an error
  session.close();
}

TEST_CASE("a time limit reads no clock and costs nothing in a step", "[hooks][time_limit]") {
  const auto clock = std::make_shared<counting_clock>();
  counting_model model;
  sw::monitored_session session(sw::training_options{.clock = clock}, model, sw::time_limit_hook{1h});
  const int reads = clock->reads;
  for (int i = 0; i < 100; ++i) { session.run(); }
  CHECK(clock->reads == reads);
  clock->held.advance(1h);
  CHECK(session.should_stop());
  using raw = sw::model_session<counting_model>;
  STATIC_REQUIRE(sw::hook<sw::time_limit_hook, raw>);
  STATIC_REQUIRE_FALSE(sw::after_run_hook<sw::time_limit_hook, raw>);
  STATIC_REQUIRE_FALSE(sw::before_run_hook<sw::time_limit_hook, raw>);
}

TEST_CASE("each session has the whole time, and a closed one leaves no alarm behind", "[hooks][time_limit]") {
  const auto clock = std::make_shared<sw::manual_clock>();
  sw::time_limit_hook hook{10};
  for (int i = 0; i < 2; ++i) {
    counting_model model;
    sw::monitored_session session(sw::training_options{.clock = clock}, model, std::ref(hook));
    CHECK(clock->pending() == 1);
    clock->advance(6s);
    CHECK_FALSE(session.should_stop());
    session.close();
    CHECK(clock->pending() == 0);
  }
}

TEST_CASE("a limit above zero is asked for, and one beyond all time is none", "[hooks][time_limit]") {
  CHECK_THROWS_AS(sw::time_limit_hook{0}, sw::invalid_argument_error);
  CHECK_THROWS_AS(sw::time_limit_hook{-1s}, sw::invalid_argument_error);
  CHECK_THROWS_AS(sw::time_limit_hook{std::numeric_limits<double>::quiet_NaN()}, sw::invalid_argument_error);
  const auto clock = std::make_shared<sw::manual_clock>();
  counting_model model;
  sw::monitored_session session(sw::training_options{.clock = clock}, model, sw::time_limit_hook{std::numeric_limits<double>::infinity()});
  CHECK(clock->pending() == 0);
  CHECK_FALSE(session.should_stop());
}
