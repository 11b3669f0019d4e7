// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"
#include "support/toy_model.hpp"

#include <stepwell/base/clock.hpp>
#include <stepwell/base/error.hpp>
#include <stepwell/data/shuffled_batches.hpp>
#include <stepwell/hooks/function_hooks.hpp>
#include <stepwell/hooks/stop_hooks.hpp>
#include <stepwell/model/model_session.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

namespace sw = stepwell;
using namespace std::chrono_literals;
using sw::test::counting_model;

namespace {

using steps_type = std::vector<std::int64_t>;

struct batch_model {
  struct result {
    double loss;
  };
  std::int64_t batches = 0;
  result step(const std::vector<int>&) { return {static_cast<double>(++batches)}; }
  sw::variable_list variables() { return sw::variables({{"batches", batches}}); }
};

auto batches_of_ten(std::optional<std::uint64_t> epochs = std::nullopt) {
  return sw::data::shuffled_batches(std::vector<int>(10, 1), {.batch_size = 4, .epochs = epochs});
}

/// A model that counts three steps for each run.
struct triple_model {
  std::int64_t steps = 0;
  int unused = 0;
  void step() { steps += 3; }
  std::int64_t& global_step() { return steps; }
  sw::variable_list variables() { return sw::variables({{"unused", unused}}); }
};

}  // namespace

TEST_CASE("every_n_steps calls its function at each multiple of n", "[hooks][function_hooks]") {
  counting_model model;
  steps_type seen;
  int calls = 0;
  sw::monitored_session session(model, sw::every_n_steps(3, [&](std::int64_t step) { seen.push_back(step); }),
                                sw::every_n_steps(2, [&] { ++calls; }),
                                sw::every_n_steps(5, [&](auto& context) { seen.push_back(-context.global_step()); }));
  for (int i = 0; i < 10; ++i) { session.run(); }
  CHECK(seen == steps_type{3, -5, 6, 9, -10});
  CHECK(calls == 5);
}

TEST_CASE("every_n_steps is called once by a run that passes several multiples", "[hooks][function_hooks]") {
  triple_model model{.steps = 4};
  steps_type seen;
  sw::monitored_session session(model, sw::every_n_steps(2, [&](std::int64_t step) { seen.push_back(step); }),
                                sw::every_n_steps(5, [&](std::int64_t step) { seen.push_back(-step); }));
  for (int i = 0; i < 4; ++i) { session.run(); }
  CHECK(seen == steps_type{7, -7, 10, -10, 13, 16, -16});
}

TEST_CASE("the function of every_n_steps receives fetched values, alone or after the context", "[hooks][function_hooks]") {
  batch_model model;
  std::vector<double> losses;
  std::vector<std::pair<std::int64_t, double>> with_step;
  sw::monitored_session session(
      model,
      sw::every_n_steps(
          2, [&](double loss) { losses.push_back(loss); }, sw::fetch(&batch_model::result::loss)),
      sw::every_n_steps(
          3, [&](auto& context, double loss, std::int64_t batches) { with_step.emplace_back(context.global_step() + batches, loss); },
          sw::fetch(&batch_model::result::loss, &batch_model::batches)));
  for (int i = 0; i < 6; ++i) { session.run(std::vector<int>{}); }
  CHECK(losses == std::vector<double>{2, 4, 6});
  CHECK(with_step == std::vector<std::pair<std::int64_t, double>>{{6, 3}, {12, 6}});
}

TEST_CASE("every calls its function after each period of the session's clock, and not before the first", "[hooks][function_hooks]") {
  const auto time = std::make_shared<sw::manual_clock>();
  counting_model model;
  steps_type seen;
  steps_type values;
  sw::monitored_session session({.clock = time}, model, sw::every(30s, [&](std::int64_t step) { seen.push_back(step); }),
                                sw::every(25, [&](int count) { values.push_back(count); }, sw::fetch(&counting_model::count)));
  for (int i = 0; i < 10; ++i) {
    session.run();
    time->advance(10s);
  }
  CHECK(seen == steps_type{4, 7, 10});
  CHECK(values == steps_type{4, 7, 10});
}

TEST_CASE("every_epoch calls its function after the last batch of each epoch", "[hooks][function_hooks]") {
  batch_model model;
  std::vector<std::uint64_t> epochs;
  steps_type steps;
  sw::monitored_session session(model, sw::every_epoch([&](std::uint64_t epoch) { epochs.push_back(epoch); }),
                                sw::every_epoch([&](auto& context, std::uint64_t) { steps.push_back(context.global_step()); }),
                                sw::every_epoch([&](auto& context) { steps.push_back(-context.global_step()); }));
  auto batches = batches_of_ten(3);
  for ([[maybe_unused]] const auto& step : session.steps(batches)) {}
  CHECK(epochs == std::vector<std::uint64_t>{0, 1, 2});
  CHECK(steps == steps_type{3, -3, 6, -6, 9, -9});
  session.close();
}

TEST_CASE("a run outside of a loop over epochs is in no epoch", "[hooks][function_hooks]") {
  batch_model model;
  int calls = 0;
  sw::monitored_session session(model, sw::every_epoch([&] { ++calls; }));
  auto batches = batches_of_ten();
  for (const auto& step : session.steps(batches)) {
    if (step.global_step == 2) { break; }
  }
  CHECK(batches.is_last_of_epoch());
  session.run(std::vector<int>{});
  CHECK(calls == 0);
  std::vector<std::vector<int>> list(5);
  for ([[maybe_unused]] const auto& step : session.steps(list)) {}
  CHECK(calls == 0);
}

TEST_CASE("at_end calls its function once, at the close", "[hooks][function_hooks]") {
  counting_model model;
  std::vector<std::int64_t> ends;
  sw::monitored_session session(model, sw::at_end([&] { ends.push_back(-1); }),
                                sw::at_end([&](std::int64_t step) { ends.push_back(step); }),
                                sw::at_end([&](auto& last) { ends.push_back(10 * last.global_step()); }));
  session.run();
  session.run();
  CHECK(ends.empty());
  session.close();
  CHECK(ends == std::vector<std::int64_t>{-1, 2, 20});
}

TEST_CASE("an exception of such a function is a failure of the run", "[hooks][function_hooks]") {
  counting_model model;
  sw::monitored_session session(model, sw::every_n_steps(2, [] { throw std::runtime_error("two"); }));
  session.run();
  CHECK_THROWS_WITH(session.run(), "two");
}

TEST_CASE("periods that make no sense are refused by name", "[hooks][function_hooks]") {
  const auto nothing = [] {};
  CHECK_THROWS_WITH(sw::every_n_steps(0, nothing), ContainsSubstring("every_n_steps: n is 0"));
  CHECK_THROWS_WITH(sw::every_n_steps(-3, nothing, sw::fetch(&counting_model::count)), ContainsSubstring("n is -3"));
  CHECK_THROWS_WITH(sw::every(0s, nothing), ContainsSubstring("every: the period is 0 s"));
  CHECK_THROWS_WITH(sw::every_epoch(nothing, sw::saved_state{"", [] { return sw::variable_list(); }}),
                    ContainsSubstring("the name is empty"));
  CHECK_THROWS_WITH(sw::at_end(nothing, sw::saved_state{"name", nullptr}), ContainsSubstring("variables is empty"));
}

TEST_CASE("every_n_steps reads its values in the order in which they are given", "[hooks][function_hooks]") {
  std::vector<int> order;
  const auto value = [&order](int number) { return [&order, number](const counting_model&) { return order.push_back(number), number; }; };
  counting_model model;
  sw::monitored_session session(model, sw::every_n_steps(1, [](int, int, int) {}, sw::fetch(value(1), value(2), value(3))));
  session.run();
  CHECK(order == std::vector{1, 2, 3});
}
