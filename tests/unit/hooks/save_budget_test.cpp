// SPDX-License-Identifier: Apache-2.0
#include <stepwell/hooks/detail/save_budget.hpp>

#include "support/catch.hpp"
#include "support/log_capture.hpp"
#include "support/temporary_directory.hpp"
#include "support/toy_model.hpp"

#include <stepwell/base/error.hpp>
#include <stepwell/hooks/checkpoint_saver_hook.hpp>
#include <stepwell/training/monitored_training_session.hpp>

#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>

namespace sw = stepwell;
using namespace std::chrono_literals;
using sw::test::adding_model;
using sw::test::log_capture;
using sw::test::temporary_directory;
using options = sw::training_options;

namespace {

/// A budget of 1 % on a manual clock, with saves that stop training and slow no step.
struct budget_rig {
  std::shared_ptr<sw::manual_clock> clock = std::make_shared<sw::manual_clock>();
  sw::detail::save_budget budget;
  std::int64_t step = 0;

  explicit budget_rig(sw::interval_bounds bounds = {}) : budget(0.01, bounds, "run") { budget.start(clock); }

  /// Makes a save that stops training for `stall`, after a step without a save. Returns the interval in seconds.
  double save(std::chrono::milliseconds stall) {
    clock->advance(1s);
    budget.begin(++step);
    clock->advance(stall);
    budget.accept();
    clock->advance(1s);
    static_cast<void>(budget.end(++step));
    return budget.interval().count();
  }
};

std::string failure_of(const options& given) {
  adding_model model;
  try {
    static_cast<void>(sw::monitored_training_session(model, given));
  } catch (const sw::invalid_argument_error& failure) { return failure.what(); }
  return "";
}

}  // namespace

TEST_CASE("the interval is the mean cost of a save over its share of the time", "[hooks][save_budget]") {
  budget_rig rig;
  CHECK(rig.budget.interval().count() == 1);  // the shortest: nothing is measured
  CHECK(rig.save(100ms) == Approx(10));
  CHECK(rig.save(200ms) == Approx(15));  // half of the weight is that of the last save
  CHECK(rig.save(200ms) == Approx(17.5));
}

TEST_CASE("the interval stays within its bounds", "[hooks][save_budget]") {
  budget_rig rig({.min_interval = 5, .max_interval = 20});
  CHECK(rig.save(1ms) == 5);
  CHECK(rig.save(10s) == 20);
}

TEST_CASE("a recovery keeps the measured cost, and forgets the save that it interrupted", "[hooks][save_budget]") {
  budget_rig rig;
  rig.save(100ms);
  rig.budget.begin(++rig.step);
  CHECK(rig.budget.is_saving());
  rig.budget.start(rig.clock);
  CHECK(!rig.budget.is_saving());
  CHECK(rig.budget.interval().count() == Approx(10));
}

TEST_CASE("a save whose state was not copied has no cost", "[hooks][save_budget]") {
  budget_rig rig;
  rig.save(100ms);
  rig.budget.begin(++rig.step);
  rig.clock->advance(100s);
  static_cast<void>(rig.budget.end(++rig.step));
  CHECK(rig.budget.interval().count() == Approx(10));
}

TEST_CASE("the chosen interval is logged when it changes by more than a fifth, at most once in 10 s", "[hooks][save_budget]") {
  log_capture log;
  budget_rig rig;
  rig.save(100ms);
  CHECK(log.contains(sw::log_level::info,
                     "run: a checkpoint is saved every 10 s, for a share of 0.01 of the time; a save stops training for 0.1 s"));
  rig.save(1000ms);  // 3 s later
  CHECK(log.count(sw::log_level::info) == 1);
  rig.clock->advance(10s);
  rig.save(550ms);
  CHECK(log.contains(sw::log_level::info, "run: a checkpoint is saved every 55 s"));
  rig.clock->advance(10s);
  rig.save(600ms);
  CHECK(log.count(sw::log_level::info) == 2);
}

TEST_CASE("the line about the chosen interval has the name of the session", "[hooks][save_budget]") {
  log_capture log;
  budget_rig rig;
  rig.budget.start(rig.clock, "digits");
  rig.save(100ms);
  CHECK(log.contains(sw::log_level::info, "[digits] run: a checkpoint is saved every 10 s"));
}

TEST_CASE("a share and a period are not given together", "[hooks][save_budget]") {
  const temporary_directory directory;
  options given{.checkpoint_dir = directory.path(), .saves = {.save_overhead = 0.02}};
  CHECK(failure_of(given).empty());
  given.saves.save_steps = sw::none;
  CHECK(failure_of(given).empty());
  given.saves.save_steps = 100;
  CHECK(failure_of(given).starts_with("both saves.save_overhead and saves.save_steps are given"));
  given.saves.save_steps = {};
  given.saves.save_secs = 30;
  CHECK(failure_of(given).starts_with("both saves.save_overhead and saves.save_secs are given"));
  CHECK_THROWS_AS((sw::checkpoint_saver_hook{{.checkpoint_dir = directory.path(), .save_steps = 1, .save_overhead = 0.1}}),
                  sw::invalid_argument_error);
}

TEST_CASE("a share is at least zero and below one, and its bounds agree", "[hooks][save_budget]") {
  const temporary_directory directory;
  for (const double share : {-0.1, 1.0, std::numeric_limits<double>::quiet_NaN()}) {
    CHECK(failure_of({.checkpoint_dir = directory.path(), .saves = {.save_overhead = share}}).starts_with("saves.save_overhead is "));
  }
  const options wrong{.checkpoint_dir = directory.path(), .saves = {.save_overhead = 0.1, .save_interval = {.min_interval = 601}}};
  CHECK(failure_of(wrong).starts_with("min_interval is 601 s and max_interval is 600 s"));
  CHECK(failure_of({.saves = {.save_interval = {.min_interval = -1}}}).starts_with("min_interval is -1"));
}

TEST_CASE("a share of zero switches saving off, like a period of zero", "[hooks][save_budget]") {
  const temporary_directory directory;
  const auto off = GENERATE(sw::setting<double>(0), sw::setting<double>(sw::none));
  adding_model model;
  auto session = sw::monitored_training_session(model, {.checkpoint_dir = directory.path(), .saves = {.save_overhead = off}});
  CHECK(!session.hook<sw::checkpoint_saver_hook>().is_on());
}
