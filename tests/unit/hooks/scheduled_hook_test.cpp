// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"
#include "support/log_capture.hpp"
#include "support/temporary_directory.hpp"

#include <stepwell/base/error.hpp>
#include <stepwell/hooks/evaluate_every.hpp>
#include <stepwell/hooks/scheduled_hook.hpp>
#include <stepwell/hooks/stop_hooks.hpp>
#include <stepwell/training/monitored_training_session.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

namespace sw = stepwell;
namespace schedules = stepwell::schedules;
using namespace sw::test;

namespace {

/// A model that records the rate of each step. Its loss follows a script.
struct rated_model {
  struct result {
    double loss;
    std::optional<double> measured;
  };
  struct optimizer {
    float rate = 7;
  };

  double rate = 1;
  optimizer inner = {};
  std::int64_t next = 0;
  std::vector<double> script = std::vector<double>(100, 1.0);
  std::vector<double> rates = {};

  result step() {
    rates.push_back(rate);
    const double loss = script.at(static_cast<std::size_t>(next++));
    return {loss, next % 2 == 0 ? std::optional(loss) : std::nullopt};
  }
  sw::variable_list variables() { return sw::variables({{"next", next}}); }
};

double halves(std::int64_t step) { return 1.0 / static_cast<double>(1 + step); }

void run_steps(auto& session, int count) {
  for (int i = 0; i < count; ++i) { session.run(); }
}

double constant_loss(const rated_model& /*model*/) { return 1; }

/// Steps after which the rate has changed, with the new rates.
using changes = std::vector<std::pair<std::int64_t, double>>;

/// Trains to the step `first_end`, and then with another session to `end`. The rate is halved after two results of the evaluation that are
/// not better. `evaluation(other)` makes the hook that evaluates.
changes changes_of_rate(const auto& evaluation, std::int64_t first_end, std::int64_t end) {
  const temporary_directory directory;
  changes seen;
  double rate = 1;
  for (const auto last : {first_end, end}) {
    rated_model model;
    rated_model other;
    const auto tested = evaluation(other);
    auto session = sw::monitored_training_session(
        model, {.checkpoint_dir = directory.path(), .summaries = {.save_steps = sw::none}, .step_counter = {.every_n_steps = sw::none}},
        tested, sw::reduce_on_plateau_hook{{.plateau = {.factor = 0.5, .patience = 2}}, &rated_model::rate, tested.value("loss")},
        sw::stop_at_step(last));
    for (const auto& step : session.steps()) {
      if (model.rate != rate) { seen.emplace_back(step.global_step, rate = model.rate); }
    }
    session.close();
  }
  return seen;
}

}  // namespace

TEST_CASE("scheduled sets a member to the schedule's value at the number of steps done", "[hooks][scheduled]") {
  rated_model model;
  sw::monitored_session session(model, sw::scheduled(&rated_model::rate, schedules::piecewise_constant({1}, {0.5, 0.25})));
  run_steps(session, 4);
  CHECK(model.rates == std::vector<double>{0.5, 0.5, 0.25, 0.25});
}

TEST_CASE("the target of scheduled may be a part of a member or a setter, and the schedule any function", "[hooks][scheduled]") {
  rated_model model;
  std::vector<double> set;
  sw::monitored_session session(model, sw::scheduled([](rated_model& of) -> float& { return of.inner.rate; }, halves),
                                sw::scheduled([&](double rate) { set.push_back(rate); }, [](std::int64_t step) { return 10 * step; }));
  run_steps(session, 2);
  CHECK(model.inner.rate == 0.5F);
  CHECK(set == std::vector<double>{0, 10});
}

TEST_CASE("a resumed run has the rates of one that was not stopped", "[hooks][scheduled]") {
  const temporary_directory directory;
  const auto schedule = [] { return schedules::warm_up(3, schedules::cosine_decay({.initial = 1, .decay_steps = 10})); };
  std::vector<double> rates;
  for (const std::int64_t last : {4, 9}) {
    rated_model model;
    auto session = sw::monitored_training_session(model, {.checkpoint_dir = directory.path()},
                                                  sw::scheduled(&rated_model::rate, schedule()), sw::stop_at_step(last));
    session.run_all();
    session.close();
    rates.insert(rates.end(), model.rates.begin(), model.rates.end());
  }
  std::vector<double> expected;
  for (std::int64_t step = 0; step < 9; ++step) { expected.push_back(schedule()(step)); }
  CHECK(rates == expected);
}

TEST_CASE("reduce_on_plateau_hook reduces the rate of the next run, and logs it", "[hooks][scheduled]") {
  const log_capture log;
  rated_model model;
  sw::monitored_session session(
      model, sw::reduce_on_plateau_hook{{.plateau = {.factor = 0.5, .patience = 2}}, &rated_model::rate, &rated_model::result::loss});
  run_steps(session, 6);
  CHECK(model.rates == std::vector<double>{1, 1, 1, 0.5, 0.5, 0.25});
  CHECK(log.contains(sw::log_level::info, "step 3: the rate is reduced from 1 to 0.5"));
}

TEST_CASE("reduce_on_plateau_hook reduces a float rate to min_rate once", "[hooks][scheduled]") {
  const log_capture log;
  rated_model model;
  model.inner.rate = 0.01F;
  const auto rate = [](rated_model& of) -> float& { return of.inner.rate; };
  sw::reduce_on_plateau_hook hook{{.plateau = {.factor = 0.1, .patience = 2, .min_rate = 0.001}}, rate, &rated_model::result::loss};
  sw::monitored_session session(model, std::ref(hook));
  run_steps(session, 20);
  CHECK(model.inner.rate == 0.001F);
  CHECK(hook.plateau().reductions() == 1);
}

TEST_CASE("reduce_on_plateau_hook counts optional values, and those of due steps only", "[hooks][scheduled]") {
  const log_capture log;
  rated_model optional_values;
  sw::monitored_session one(
      optional_values,
      sw::reduce_on_plateau_hook{{.plateau = {.factor = 0.5, .patience = 1}}, &rated_model::rate, &rated_model::result::measured});
  run_steps(one, 5);
  CHECK(optional_values.rates == std::vector<double>{1, 1, 1, 1, 0.5});
  rated_model every_third;
  sw::monitored_session two(
      every_third, sw::reduce_on_plateau_hook{
                       {.plateau = {.factor = 0.5, .patience = 1}, .every_n_steps = 3}, &rated_model::rate, &rated_model::result::loss});
  run_steps(two, 7);
  CHECK(every_third.rates == std::vector<double>{1, 1, 1, 1, 1, 1, 0.5});
}

TEST_CASE("a run that is resumed continues with the reduced rate", "[hooks][scheduled]") {
  const log_capture log;
  const temporary_directory directory;
  std::vector<double> rates;
  for (const std::int64_t last : {4, 6}) {
    rated_model model;
    auto session = sw::monitored_training_session(
        model, {.checkpoint_dir = directory.path()},
        sw::reduce_on_plateau_hook{{.plateau = {.factor = 0.5, .patience = 2}}, &rated_model::rate, &rated_model::result::loss},
        sw::stop_at_step(last));
    session.run_all();
    session.close();
    rates.insert(rates.end(), model.rates.begin(), model.rates.end());
  }
  CHECK(rates == std::vector<double>{1, 1, 1, 0.5, 0.5, 0.25});
}

TEST_CASE("reduce_on_plateau_hook waits for the next value if an optional one is empty when it is due", "[hooks][scheduled]") {
  const log_capture log;
  rated_model model;
  sw::monitored_session session(
      model, sw::reduce_on_plateau_hook{
                 {.plateau = {.factor = 0.5, .patience = 1}, .every_n_steps = 3}, &rated_model::rate, &rated_model::result::measured});
  run_steps(session, 7);
  CHECK(model.rates == std::vector<double>{1, 1, 1, 1, 1, 1, 0.5});  // step 3 has no value: the values of the steps 4 and 6 are used
}

TEST_CASE("reduce_on_plateau_hook counts each result of an evaluation once, and a resumed run continues to count", "[hooks][scheduled]") {
  const log_capture log;
  const auto check = [](const auto& evaluation, const changes& wanted) {
    for (const std::int64_t end : {0, 15, 25, 30, 35}) {  // 0: not resumed
      CAPTURE(end);
      CHECK(changes_of_rate(evaluation, end, 60) == wanted);
    }
  };
  const auto loss = sw::measure("loss", [](double value) { return value; });
  SECTION("in the loop") {
    check([&](rated_model&) { return sw::evaluate_every(10, &constant_loss, loss); }, {{30, 0.5}, {50, 0.25}});
  }
  SECTION("beside the training, where each result takes effect at the next evaluation") {
    check([&](rated_model& other) { return sw::evaluate_every(10, sw::beside(other), &constant_loss, loss); }, {{40, 0.5}, {60, 0.25}});
  }
}

TEST_CASE("reduce_on_plateau_hook is rejected if the session does not have the evaluation that it watches", "[hooks][scheduled]") {
  rated_model model;
  const auto tested = sw::evaluate_every(10, &constant_loss, sw::measure("loss", [](double value) { return value; }));
  CHECK_THROWS_WITH(sw::monitored_session(model, sw::reduce_on_plateau_hook{&rated_model::rate, tested.value("loss")}),
                    ContainsSubstring("reduce_on_plateau_hook: the metric \"loss\" would never get a value"));
}

TEST_CASE("options of reduce_on_plateau_hook that make no sense are refused by name", "[hooks][scheduled]") {
  const auto make = [](sw::reduce_on_plateau_hook_options options) {
    return sw::reduce_on_plateau_hook{options, &rated_model::rate, &rated_model::result::loss};
  };
  CHECK_THROWS_WITH(make({.every_n_steps = 0}), ContainsSubstring("every_n_steps=0"));
  CHECK_THROWS_WITH(make({.name = ""}), ContainsSubstring("name is empty"));
  CHECK_THROWS_WITH(make({.plateau = {.factor = 2}}), ContainsSubstring("factor is 2"));
}
