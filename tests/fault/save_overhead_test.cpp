// SPDX-License-Identifier: Apache-2.0
//
// Sessions that choose the interval between checkpoints from a share of the time. The test determines the cost of each save: it moves
// the clock while the state is copied, and at each step, and a gate keeps the disk busy for a given number of steps.
#include "support/catch.hpp"
#include "support/gate.hpp"
#include "support/session_rig.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace sw = stepwell;
using namespace std::chrono_literals;
using sw::test::operation;
using sw::test::session_rig;
using sw::test::wait_for_saves;

namespace {

/// A machine on which a save stops training for `stall`, and on which the next `slow_steps` steps take half as long again.
struct machine_rig : session_rig, sw::checkpoint_saver_listener, std::enable_shared_from_this<machine_rig> {
  sw::test::gate gate;
  std::chrono::milliseconds step_time = 100ms;
  std::chrono::milliseconds stall = 40ms;
  std::int64_t slow_steps = 10;
  std::int64_t slow_left = 0;
  std::chrono::duration<double> cost{};
  std::vector<double> saved_at;  // seconds since the start
  const sw::clock::time_point start = clock->now();

  machine_rig() {
    files->before_each([this](const sw::test::event& asked) {
      if (asked.kind == operation::write && asked.path.find("model.ckpt") != std::string::npos) { gate.pass(); }
    });
  }
  ~machine_rig() override {
    gate.open();
    pool->join();
  }

  void before_save(std::int64_t /*step*/) override {
    saved_at.push_back(seconds_since(start));
    gate.close();
    clock->advance(stall);
    cost += stall;
    slow_left = slow_steps;
  }
  [[nodiscard]] double seconds_since(sw::clock::time_point when) const {
    return std::chrono::duration<double>(clock->now() - when).count();
  }

  [[nodiscard]] auto session_with(double share, sw::interval_bounds bounds = {}) {
    auto made = options();
    made.saves.save_steps = {};
    made.saves.save_overhead = share;
    made.saves.save_interval = bounds;
    made.saves.listeners = {shared_from_this()};
    made.saves.saver.max_to_keep = 1;
    return sw::monitored_training_session(model, made);
  }
  /// Runs steps and returns the share of their time that saving cost.
  template<class Session>
  double share_in(Session& session, int steps) {
    const auto begun = clock->now();
    cost = {};
    for (int i = 0; i < steps; ++i) {
      if (slow_left > 0) {
        clock->advance(step_time / 2);
        cost += step_time / 2;
        if (--slow_left == 0) {
          gate.open();
          wait_for_saves(session);
        }
      }
      clock->advance(step_time);
      session.run(session.global_step() + 1);
    }
    return cost.count() / seconds_since(begun);
  }
  template<class Session>
  void close(Session session) {
    gate.open();
    stall = 0ms;
    wait_for_saves(session);
    files->before_each(nullptr);
    session.close();
  }
};

bool is_within_a_fifth(double share, double of) { return share > 0.8 * of && share < 1.2 * of; }

}  // namespace

TEST_CASE("saving keeps its share of the time when the step time doubles half-way", "[fault][session][overhead]") {
  const auto rig = std::make_shared<machine_rig>();
  auto session = rig->session_with(0.02);
  const double before = rig->share_in(session, 5000);
  rig->step_time *= 2;
  const double after = rig->share_in(session, 5000);
  INFO(before << " " << after);
  CHECK(is_within_a_fifth(before, 0.02));
  CHECK(is_within_a_fifth(after, 0.02));
  rig->close(std::move(session));
}

TEST_CASE("saving keeps its share of the time when the disk becomes ten times slower", "[fault][session][overhead]") {
  const auto rig = std::make_shared<machine_rig>();
  auto session = rig->session_with(0.02);
  const double before = rig->share_in(session, 5000);
  rig->slow_steps *= 10;
  const double after = rig->share_in(session, 50'000);
  INFO(before << " " << after);
  CHECK(is_within_a_fifth(before, 0.02));
  CHECK(is_within_a_fifth(after, 0.02));
  rig->close(std::move(session));
}

TEST_CASE("saves are no closer and no farther apart than the bounds say", "[fault][session][overhead]") {
  const auto rig = std::make_shared<machine_rig>();
  const bool is_cheap = GENERATE(true, false);
  if (is_cheap) {
    rig->stall = 0ms;
    rig->slow_steps = 1;
  } else {
    rig->stall = 5s;
  }
  auto session = rig->session_with(0.1, {.min_interval = 10, .max_interval = 20});
  rig->share_in(session, 700);
  REQUIRE(rig->saved_at.size() >= 4);
  for (std::size_t i = 1; i < rig->saved_at.size(); ++i) {
    CHECK(rig->saved_at[i] - rig->saved_at[i - 1] == Approx(is_cheap ? 10.0 : 20.0).margin(0.11));  // to the end of a step
  }
  rig->close(std::move(session));
}

TEST_CASE("a save does not begin before the previous one has ended", "[fault][session][overhead]") {
  const auto rig = std::make_shared<machine_rig>();
  rig->slow_steps = 100;  // 15 s
  auto session = rig->session_with(0.5, {.min_interval = 1, .max_interval = 2});
  rig->share_in(session, 99);
  CHECK(rig->saved_at.size() == 1);
  rig->share_in(session, 2);
  CHECK(rig->saved_at.size() == 2);
  rig->close(std::move(session));
}

TEST_CASE("a process that resumes measures anew, and begins with the shortest interval", "[fault][session][overhead]") {
  const auto rig = std::make_shared<machine_rig>();
  {
    auto session = rig->session_with(0.02, {.min_interval = 3});
    rig->share_in(session, 1000);
    CHECK(rig->saved_at.back() - *(rig->saved_at.end() - 2) > 20);
    rig->close(std::move(session));
  }
  rig->saved_at.clear();
  const double resumed = rig->seconds_since(rig->start);
  auto session = rig->session_with(0.02, {.min_interval = 3});
  CHECK(session.restored_from().has_value());
  rig->share_in(session, 31);
  REQUIRE(rig->saved_at.size() == 1);
  CHECK(rig->saved_at.front() - resumed == Approx(3).margin(0.11));
  rig->close(std::move(session));
}
