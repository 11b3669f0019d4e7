// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"

#include <stepwell/base/error.hpp>
#include <stepwell/hooks/stop_hooks.hpp>
#include <stepwell/model/model_session.hpp>

#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

namespace sw = stepwell;

namespace {

/// A model that makes `steps_to_make` steps in one run.
struct looping_model {
  std::shared_ptr<const std::int64_t> steps_to_make;
  std::int64_t steps = 0;
  std::vector<std::int64_t> made = {};

  std::int64_t step() {
    made.push_back(*steps_to_make);
    return steps += *steps_to_make;
  }
  std::int64_t& global_step() { return steps; }
  sw::variable_list variables() { return {}; }
};

std::vector<std::int64_t> runs_of(sw::multi_step_stop_at_step_options options, std::int64_t start = 0) {
  sw::multi_step_stop_at_step_hook stop{options};
  const auto told = stop.steps_per_run();
  looping_model model{.steps_to_make = told, .steps = start};
  sw::monitored_session session(model, std::move(stop));
  for ([[maybe_unused]] const auto& step : session.steps()) {}
  CHECK(*told == 0);
  return model.made;
}

using counts = std::vector<std::int64_t>;

}  // namespace

TEST_CASE("HOOK-MULTI-1 the model gets the number of steps of a run, and the last run does not overshoot", "[hooks][multi_step]") {
  CHECK(runs_of({.last_step = 10, .steps_per_run = 4}) == counts{4, 4, 2});
  CHECK(runs_of({.last_step = 8, .steps_per_run = 4}) == counts{4, 4});
  CHECK(runs_of({.num_steps = 10, .steps_per_run = 4}, 5) == counts{4, 4, 2});
  CHECK(runs_of({.last_step = 10, .steps_per_run = 4}, 9) == counts{1});
  CHECK(runs_of({.last_step = 3}) == counts{1, 1, 1});
  CHECK(runs_of({.last_step = 10, .steps_per_run = std::numeric_limits<std::int64_t>::max()}) == counts{10});
}

TEST_CASE("HOOK-MULTI-1 D-6 a run resumed at or past its end makes no step", "[hooks][multi_step]") {
  CHECK(runs_of({.last_step = 10, .steps_per_run = 4}, 10).empty());
  CHECK(runs_of({.last_step = 10, .steps_per_run = 4}, 12).empty());
}

TEST_CASE("HOOK-MULTI-1 a run makes at least one step, and has one end", "[hooks][multi_step]") {
  for (const std::int64_t steps : {0, -1}) {
    CHECK_THROWS_AS((sw::multi_step_stop_at_step_hook{{.last_step = 10, .steps_per_run = steps}}), sw::invalid_argument_error);
    CHECK_THROWS_WITH((sw::multi_step_stop_at_step_hook{{.last_step = 10, .steps_per_run = steps}}), ContainsSubstring("steps_per_run"));
  }
  CHECK_THROWS_AS((sw::multi_step_stop_at_step_hook{{.num_steps = 1, .last_step = 1}}), sw::invalid_argument_error);
  CHECK_THROWS_AS((sw::multi_step_stop_at_step_hook{{.steps_per_run = 2}}), sw::invalid_argument_error);
  CHECK(sw::multi_step_stop_at_step_hook{{.last_step = 10}}.last_step() == 10);
}
