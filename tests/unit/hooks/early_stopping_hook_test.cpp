// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"
#include "support/temporary_directory.hpp"
#include "unit/hooks/scripted_model.hpp"

#include <stepwell/base/error.hpp>
#include <stepwell/checkpoint/find_checkpoints.hpp>
#include <stepwell/hooks/checkpoint_saver_hook.hpp>
#include <stepwell/hooks/early_stopping_hook.hpp>
#include <stepwell/model/model_session.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

namespace sw = stepwell;
using sw::test::scripted_model;

namespace {

constexpr double nan_value = std::numeric_limits<double>::quiet_NaN();

/// Returns the step after which the training was stopped, or 0 if it was not stopped.
std::int64_t stopped_after(std::vector<double> script, sw::early_stopping_options options) {
  scripted_model model{.script = script};
  sw::monitored_session session(model, sw::early_stopping_hook{options, &scripted_model::result::score});
  for (std::size_t i = 0; i < script.size(); ++i) {
    session.run();
    if (session.should_stop()) { return session.global_step(); }
  }
  return 0;
}

}  // namespace

TEST_CASE("training ends when nothing was better for as many values as patience says", "[hooks][early_stopping]") {
  CHECK(stopped_after({5, 4, 3, 3, 3, 3}, {.patience = 3}) == 6);
  CHECK(stopped_after({5, 4, 6, 6, 3, 4, 4, 4}, {.patience = 3}) == 8);
  CHECK(stopped_after({5, 4, 3, 2, 1}, {.patience = 1}) == 0);
  CHECK(stopped_after({1, 2, 3, 3, 2}, {.patience = 2, .mode = sw::early_stopping_mode::maximize}) == 5);
  CHECK(stopped_after({1, 2, 3, 4}, {.patience = 2}) == 3);
}

TEST_CASE("an improvement is one by more than min_delta, counted from the best", "[hooks][early_stopping]") {
  CHECK(stopped_after({10, 9.5, 9.25, 9}, {.patience = 3, .min_delta = 1}) == 4);
  CHECK(stopped_after({10, 9.5, 8.9, 8.5, 7}, {.patience = 3, .min_delta = 1}) == 0);
  CHECK(stopped_after({1, 1.5, 2, 2}, {.patience = 3, .min_delta = 1, .mode = sw::early_stopping_mode::maximize}) == 4);
}

TEST_CASE("a value that is no number is no improvement", "[hooks][early_stopping]") {
  CHECK(stopped_after({nan_value, nan_value}, {.patience = 2}) == 2);
  CHECK(stopped_after({3, nan_value, 2, nan_value, nan_value}, {.patience = 2}) == 5);
  CHECK(stopped_after({3, nan_value, 3.5, nan_value}, {.generalization_loss = 5}) == 3);
}

TEST_CASE("Prechelt's generalization loss ends training that is so many per cent above its best", "[hooks][early_stopping]") {
  CHECK(stopped_after({2, 1, 1.25, 1.5, 1.75}, {.generalization_loss = 50}) == 5);
  CHECK(stopped_after({2, 1, 1.04, 0.5, 0.54}, {.generalization_loss = 5}) == 5);
  CHECK(stopped_after({2, 1.999, 1.998, 2}, {.min_delta = 1, .generalization_loss = 0}) == 4);  // uses the lowest value, not min_delta
  CHECK(stopped_after({0, 0, 0.001}, {.generalization_loss = 1000}) == 3);
  CHECK(stopped_after({2, 3, 4}, {.patience = 1, .generalization_loss = 1000}) == 2);
  CHECK_THROWS_WITH(stopped_after({-1}, {.generalization_loss = 5}), ContainsSubstring("not negative"));
}

TEST_CASE("the reason says what the best value was, and when", "[hooks][early_stopping]") {
  scripted_model model{.script = {3, 1.5, 2, 2}};
  sw::monitored_session session(
      model, sw::early_stopping_hook{{.patience = 2, .min_delta = 0.25}, sw::tag("validation loss", &scripted_model::result::score)});
  for ([[maybe_unused]] const auto& step : session.steps()) {}
  CHECK(session.stop_reason().cause == sw::stop_cause::no_progress);
  CHECK(session.stop_reason().text ==
        "early stopping: the best value of validation loss was 1.5 at step 2; none of the 2 values since then is better by more than 0.25");
  const auto& hook = session.hook<sw::early_stopping_hook<sw::tagged<double scripted_model::result::*>>>();
  CHECK(hook.best() == 1.5);
  CHECK(hook.best_step() == 2);
  CHECK(hook.waited() == 2);
}

TEST_CASE("only runs that measure something count, and only those that reach a multiple of every_n_steps", "[hooks][early_stopping]") {
  scripted_model model{.script = {9, 5, 9, 5, 9, 5, 9, 5}};
  sw::monitored_session session(model, sw::early_stopping_hook{{.patience = 2}, &scripted_model::result::measured});
  for ([[maybe_unused]] const auto& step : session.steps()) {}
  CHECK(session.global_step() == 6);
  CHECK(stopped_after({9, 9, 5, 9, 9, 5, 9, 9, 5, 9}, {.patience = 2, .every_n_steps = 3}) == 9);
}

TEST_CASE("a resumed run continues to count", "[hooks][early_stopping]") {
  const sw::test::temporary_directory directory;
  const std::vector<double> script{3, 1, 2, 2, 2, 2};
  const auto start = [&](scripted_model& model, std::int64_t patience) {
    model.script = script;
    return sw::monitored_session(sw::session_setup{.find_checkpoint = [&] { return sw::latest_whole_checkpoint(directory.path()); }}, model,
                                 sw::early_stopping_hook{{.patience = patience}, &scripted_model::result::score},
                                 sw::checkpoint_saver_hook{{.checkpoint_dir = directory.path(), .save_steps = 1}});
  };
  {
    scripted_model model;
    auto session = start(model, 3);
    for (int i = 0; i < 4; ++i) { session.run(); }
    CHECK_FALSE(session.should_stop());
    session.close();
  }
  {
    scripted_model model;
    auto session = start(model, 3);
    CHECK_FALSE(session.should_stop());
    session.run();
    CHECK(session.should_stop());
    CHECK(session.global_step() == 5);
    session.close();
  }
  {
    scripted_model model;
    auto stopped = start(model, 3);
    CHECK(stopped.should_stop());  // stopped before the restart, and nothing has changed
    stopped.close();
  }
  scripted_model model;
  auto patient = start(model, 4);
  CHECK_FALSE(patient.should_stop());
  patient.run();
  CHECK(patient.should_stop());
  patient.close();
}

TEST_CASE("early stopping that begins again has seen nothing", "[hooks][early_stopping]") {
  sw::early_stopping_hook hook{{.patience = 2}, &scripted_model::result::score};
  for (int i = 0; i < 2; ++i) {
    scripted_model model{.script = {1 + 5.0 * i, 2 + 5.0 * i, 2 + 5.0 * i, 9}};
    sw::monitored_session session(model, std::ref(hook));
    CHECK_FALSE(hook.best().has_value());
    for ([[maybe_unused]] const auto& step : session.steps()) {}
    CHECK(session.global_step() == 3);
    CHECK(hook.best_step() == 1);
  }
}

TEST_CASE("options of early stopping that make no sense are refused", "[hooks][early_stopping]") {
  const auto make = [](sw::early_stopping_options options) {
    return sw::early_stopping_hook{std::move(options), &scripted_model::result::score};
  };
  CHECK_THROWS_AS(make({}), sw::invalid_argument_error);
  CHECK_THROWS_AS(make({.patience = 0}), sw::invalid_argument_error);
  CHECK_THROWS_AS(make({.patience = 1, .min_delta = -1}), sw::invalid_argument_error);
  CHECK_THROWS_AS(make({.patience = 1, .every_n_steps = 0}), sw::invalid_argument_error);
  CHECK_THROWS_AS(make({.patience = 1, .name = ""}), sw::invalid_argument_error);
  CHECK_THROWS_AS(make({.generalization_loss = -1}), sw::invalid_argument_error);
  CHECK_THROWS_AS(make({.mode = sw::early_stopping_mode::maximize, .generalization_loss = 1}), sw::invalid_argument_error);
}
