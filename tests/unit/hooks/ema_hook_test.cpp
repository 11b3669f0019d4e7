// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"
#include "support/checkpoint_files.hpp"
#include "support/log_capture.hpp"
#include "support/toy_model.hpp"

#include <stepwell/base/error.hpp>
#include <stepwell/checkpoint/find_checkpoints.hpp>
#include <stepwell/checkpoint/restore.hpp>
#include <stepwell/hooks/checkpoint_saver_hook.hpp>
#include <stepwell/hooks/ema_hook.hpp>
#include <stepwell/model/model_session.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sw = stepwell;
using sw::test::adding_model;
using sw::test::temporary_directory;

namespace {

/// A model with changing variables of every kind: averaged ones, and a count that is not averaged.
struct wandering_model {
  std::vector<float> weights = std::vector<float>(37, 1.0f);
  std::array<double, 3> bias{1, 2, 3};
  float scale = 5;
  std::int64_t count = 0;

  int step() {
    ++count;
    const auto at = static_cast<double>(count);
    for (std::size_t i = 0; i < weights.size(); ++i) { weights[i] = static_cast<float>(std::sin(at + static_cast<double>(i))); }
    for (auto& value : bias) { value += std::cos(at); }
    scale = static_cast<float>(1 / at);
    return 0;
  }
  sw::variable_list variables() {
    return sw::variables(
        {{"weights", weights}, {"bias", bias}, {"count", count}, {"inner", std::vector<sw::variable_ref>{{"scale", scale}}}});
  }
  bool operator==(const wandering_model&) const = default;
};

/// Returns all averaged values in one list.
std::vector<double> values_of(const wandering_model& model) {
  std::vector<double> all(model.weights.begin(), model.weights.end());
  all.insert(all.end(), model.bias.begin(), model.bias.end());
  all.push_back(static_cast<double>(model.scale));
  return all;
}

/// Returns the averages after `steps` steps, computed by a plain loop from the definition. With zero_debias, it starts
/// from zero and divides at the end.
std::vector<double> plain_averages(int steps, const sw::ema_options& options) {
  wandering_model model;
  auto averages = values_of(model);
  if (options.zero_debias) { std::ranges::fill(averages, 0.0); }
  double left = 1;
  for (int n = 0; n < steps; ++n) {
    model.step();
    const double decay = options.num_updates ? std::min(options.decay, (1.0 + n) / (10.0 + n)) : options.decay;
    const auto values = values_of(model);
    for (std::size_t i = 0; i < averages.size(); ++i) { averages[i] = decay * averages[i] + (1 - decay) * values[i]; }
    left *= decay;
  }
  if (options.zero_debias) {
    for (auto& average : averages) { average /= 1 - left; }
  }
  return averages;
}

std::vector<double> averages_after(int steps, const sw::ema_options& options) {
  wandering_model model;
  sw::monitored_session session(model, sw::ema_hook{options, model});
  for (int i = 0; i < steps; ++i) { session.run(); }
  const auto trained = model;
  auto& ema = session.hook<sw::ema_hook>();
  ema.swap_in();
  const auto averages = values_of(model);
  ema.swap_out();
  CHECK(model == trained);
  CHECK(ema.updates() == steps);
  return averages;
}

/// Returns a session that restores from a directory and saves there every second step.
auto continued(wandering_model& model, const std::string& directory, sw::ema_options options = {.decay = 0.5}) {
  return sw::monitored_session(sw::session_setup{.find_checkpoint = [directory] { return sw::latest_whole_checkpoint(directory); }}, model,
                               sw::ema_hook{std::move(options), model},
                               sw::checkpoint_saver_hook{{.checkpoint_dir = directory, .save_steps = 2}});
}

wandering_model in_checkpoint(const std::string& directory) {
  wandering_model model;
  sw::restore(model.variables(), *sw::latest_whole_checkpoint(directory));
  return model;
}

}  // namespace

TEST_CASE("before the first session there are no averages to swap in or to copy", "[hooks][ema]") {
  wandering_model model;
  wandering_model other;
  const auto before = model;
  sw::ema_hook ema(model);
  CHECK_THROWS_WITH(ema.swap_in(), ContainsSubstring("no averages before the first session"));
  CHECK_THROWS_AS(ema.copy_to(other), sw::failed_precondition_error);
  CHECK(model == before);
  CHECK(other == before);
}

TEST_CASE("averages are those of a plain loop of doubles, however they start", "[hooks][ema]") {
  const std::array<sw::ema_options, 5> all{{{.decay = 0.9},
                                            {.decay = 0.999, .num_updates = true},
                                            {.decay = 0.99, .zero_debias = true},
                                            {.decay = 0.9, .num_updates = true, .zero_debias = true},
                                            {.decay = 0}}};
  for (const auto& options : all) {
    for (const int steps : {0, 1, 2, 50, 500}) {
      if (steps == 0 && options.zero_debias) { continue; }  // an average needs at least one step
      CAPTURE(options.decay, options.num_updates, options.zero_debias, steps);
      const auto seen = averages_after(steps, options);
      const auto expected = plain_averages(steps, options);
      REQUIRE(seen.size() == expected.size());
      double worst = 0;
      for (std::size_t i = 0; i < seen.size(); ++i) { worst = std::max(worst, std::abs(seen[i] - expected[i])); }
      CHECK(worst < 2e-6);
    }
  }
}

TEST_CASE("a copy of the hook averages the same variables", "[hooks][ema]") {
  wandering_model model;
  sw::ema_hook average(model);
  sw::ema_hook copy(average);
  const auto names_of = [](sw::ema_hook& hook) {
    std::vector<std::string> all;
    for (const auto& variable : hook.variables()) { all.push_back(variable.name()); }
    return all;
  };
  CHECK(names_of(copy) == names_of(average));
}

TEST_CASE("averages of doubles are as exact as doubles", "[hooks][ema]") {
  for (const bool zero_debias : {false, true}) {
    const auto seen = averages_after(300, {.decay = 0.97, .zero_debias = zero_debias});
    const auto expected = plain_averages(300, {.decay = 0.97, .zero_debias = zero_debias});
    for (std::size_t i = 37; i < 40; ++i) { CHECK(seen[i] == Approx(expected[i]).epsilon(1e-13)); }
  }
}

TEST_CASE("a resumed run has the averages of one that never stopped, bit by bit", "[hooks][ema]") {
  const sw::ema_options options{.decay = 0.99, .num_updates = true, .zero_debias = true};
  const temporary_directory directory;
  sw::test::log_capture log;
  for (const int steps : {5, 7}) {
    wandering_model model;
    auto session = continued(model, directory.path(), options);
    for (int i = 0; i < steps; ++i) { session.run(); }
    session.close();
  }
  wandering_model model;
  const auto session = continued(model, directory.path(), options);
  wandering_model averages;
  auto reader = sw::latest_whole_checkpoint(directory.path());
  sw::restore(averages.variables(), *reader, {.names = sw::ema_names(model.variables(), options)});
  CHECK(values_of(averages) == averages_after(12, options));
  CHECK(averages.count == 12);
}

TEST_CASE("averages that come later start from what was restored, with a warning", "[hooks][ema]") {
  const temporary_directory directory;
  wandering_model trained;
  {
    sw::monitored_session session(trained, sw::checkpoint_saver_hook{{.checkpoint_dir = directory.path(), .save_steps = 2}});
    session.run();
    session.close();
  }
  sw::test::log_capture log;
  wandering_model model;
  auto session = continued(model, directory.path());
  CHECK(log.contains(sw::log_level::warning, "the state of the hook \"ema\""));
  wandering_model copy;
  session.hook<sw::ema_hook>().copy_to(copy);
  CHECK(values_of(copy) == values_of(trained));
}

TEST_CASE("no run is possible while averages are in the place of the model", "[hooks][ema]") {
  wandering_model model;
  sw::monitored_session session(model, sw::ema_hook{model});
  session.run();
  auto& ema = session.hook<sw::ema_hook>();
  CHECK_THROWS_AS(ema.swap_out(), sw::failed_precondition_error);
  ema.swap_in();
  CHECK_THROWS_AS(ema.swap_in(), sw::failed_precondition_error);
  CHECK_THROWS_WITH(session.run(), ContainsSubstring("call swap_out first"));
  CHECK(model.count == 1);
  ema.swap_out();
  session.run();
  CHECK(model.count == 2);
}

TEST_CASE("averages never get into a checkpoint in the place of the model", "[hooks][ema]") {
  const temporary_directory directory;
  sw::test::log_capture log;
  wandering_model model;
  auto session = continued(model, directory.path());
  for (int i = 0; i < 3; ++i) { session.run(); }
  const auto trained = model;
  auto& ema = session.hook<sw::ema_hook>();
  ema.swap_in();
  CHECK_FALSE(model == trained);
  CHECK_THROWS_AS(ema.variables(), sw::failed_precondition_error);  // a save or a restore calls this first
  session.close();
  CHECK(log.contains(sw::log_level::warning, "still swapped in"));
  CHECK(model == trained);
  CHECK(in_checkpoint(directory.path()) == trained);
}

TEST_CASE("averages can be copied into another model of the same variables", "[hooks][ema]") {
  wandering_model model;
  sw::monitored_session session(model, sw::ema_hook{{.decay = 0.5}, model});
  session.run();
  wandering_model other;
  auto& ema = session.hook<sw::ema_hook>();
  ema.copy_to(other);
  CHECK(other.bias[0] == 1 + 0.5 * std::cos(1.0));
  CHECK(other.count == 0);
  wandering_model longer;
  longer.weights.resize(38);
  const auto before = longer;
  CHECK_THROWS_WITH(ema.copy_to(longer), ContainsSubstring("weights") && ContainsSubstring("[38]") && ContainsSubstring("[37]"));
  CHECK(longer == before);
  adding_model different;
  CHECK_THROWS_AS(ema.copy_to(different), sw::invalid_argument_error);
  ema.swap_in();
  CHECK_THROWS_AS(ema.copy_to(other), sw::failed_precondition_error);
  ema.swap_out();
}

TEST_CASE("only some variables may be averaged, and two averages be named apart", "[hooks][ema]") {
  wandering_model model;
  const auto only_bias = [](std::string_view name) { return name == "bias"; };
  sw::ema_hook fast{{.decay = 0.5, .only = only_bias, .name = "fast"}, model};
  sw::ema_hook slow{{.decay = 0.75, .name = "slow"}, model};
  sw::monitored_session session(model, std::ref(fast), std::ref(slow));
  session.run();
  wandering_model by_fast;
  fast.copy_to(by_fast);
  CHECK(by_fast.weights == std::vector<float>(37, 1.0f));
  CHECK(by_fast.bias[1] == 2 + 0.5 * std::cos(1.0));
  CHECK(fast.variables().size() == 3);
  CHECK(slow.variables().size() == 5);
  const auto names = sw::ema_names(model.variables(), {.only = only_bias, .name = "fast"});
  CHECK(names.size() == 1);
  CHECK(names.find("bias")->second == "stepwell/hook/fast/average/bias");
}

TEST_CASE("a hook that begins again averages afresh", "[hooks][ema]") {
  wandering_model first;
  sw::ema_hook ema{{.decay = 0.5}, first};
  for (int i = 0; i < 2; ++i) {
    sw::monitored_session session(first, std::ref(ema));
    wandering_model copy;
    ema.copy_to(copy);
    CHECK(values_of(copy) == values_of(first));
    session.run();
    CHECK(ema.updates() == 1);
    session.close();
  }
}

TEST_CASE("variables that cannot be averaged, and invalid options, are refused", "[hooks][ema]") {
  wandering_model model;
  for (const double decay : {-0.1, 1.0, std::numeric_limits<double>::quiet_NaN()}) {
    CHECK_THROWS_AS((sw::ema_hook{{.decay = decay}, model}), sw::invalid_argument_error);
  }
  CHECK_THROWS_AS((sw::ema_hook{{.name = ""}, model}), sw::invalid_argument_error);
  CHECK_THROWS_AS((sw::ema_hook{{.only = [](std::string_view) { return false; }}, model}), sw::invalid_argument_error);
  sw::test::counting_model counts_only;
  CHECK_THROWS_AS(sw::ema_hook{counts_only}, sw::invalid_argument_error);
  sw::monitored_session session(model, sw::ema_hook{model});
  session.run();
  model.weights.clear();
  CHECK_THROWS_WITH(session.run(), ContainsSubstring("have changed"));
}
