// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"
#include "support/log_capture.hpp"
#include "support/temporary_directory.hpp"

#include <stepwell/base/error.hpp>
#include <stepwell/checkpoint/find_checkpoints.hpp>
#include <stepwell/hooks/best_checkpoint_hook.hpp>
#include <stepwell/hooks/early_stopping_hook.hpp>
#include <stepwell/hooks/evaluate_every.hpp>
#include <stepwell/hooks/logging_tensor_hook.hpp>
#include <stepwell/hooks/nan_hooks.hpp>
#include <stepwell/hooks/scheduled_hook.hpp>
#include <stepwell/hooks/stop_hooks.hpp>
#include <stepwell/training/monitored_training_session.hpp>

#include <cmath>
#include <concepts>
#include <cstdint>
#include <utility>

namespace sw = stepwell;
using namespace sw::test;

namespace {

/// A model whose loss is NaN from the second step on.
struct spoilt_model {
  struct result {
    double loss;
  };
  double rate = 1;
  int steps = 0;

  result step() { return {++steps < 2 ? 1.0 : std::nan("")}; }
  auto variables() { return sw::variables({{"rate", rate}, {"steps", steps}}); }
};
using result = spoilt_model::result;

/// Runs a session with `hooks` until one of them stops it. Returns the number of steps.
template<class... Hooks>
std::int64_t steps_with(Hooks... hooks) {
  spoilt_model model;
  sw::monitored_session session(model, std::move(hooks)...);
  return session.run_all().steps;
}

/// Runs three steps of a session with `hooks`, one of which saves the best checkpoint. Returns the step of the best checkpoint.
template<class... Hooks>
std::int64_t best_after(Hooks... hooks) {
  const temporary_directory directory;
  spoilt_model model;
  auto session = sw::monitored_training_session(model, {.checkpoint_dir = directory.path(), .summaries = {.save_steps = sw::none}},
                                                std::move(hooks)..., sw::stop_at_step(3));
  session.run_all();
  session.close();
  return sw::best_checkpoint(directory.path()).value().step;
}

}  // namespace

TEST_CASE("a hook with one projection takes its options first, or none", "[hooks][options_order]") {
  const log_capture log;

  SECTION("nan_tensor_hook") {
    CHECK_THROWS_AS(steps_with(sw::nan_tensor_hook{&result::loss}), sw::nan_loss_error);
    CHECK(steps_with(sw::nan_tensor_hook{{.fail_on_nan_loss = false}, &result::loss}) == 2);
    CHECK(steps_with(sw::nan_tensor_hook{{.fail_on_nan_loss = false}, sw::tag("loss", &result::loss)}) == 2);
    CHECK(log.contains(sw::log_level::warning, "loss is nan"));
  }
  SECTION("early_stopping_hook") {
    CHECK(steps_with(sw::early_stopping_hook{{.patience = 3}, &result::loss}) == 4);
    CHECK(steps_with(sw::early_stopping_hook{{.patience = 3}, sw::tag("loss", &result::loss)}) == 4);
  }
  SECTION("rollback_on_nan_hook") {
    CHECK_THROWS_AS(steps_with(sw::rollback_on_nan_hook{{.max_rollbacks = 0}, &result::loss, sw::skip_batch{}}), sw::nan_loss_error);
    CHECK_THROWS_AS(steps_with(sw::rollback_on_nan_hook{{.max_rollbacks = 0}, &result::loss, [] {}}), sw::nan_loss_error);
  }
  SECTION("reduce_on_plateau_hook") {
    const sw::reduce_on_plateau_hook named{{.name = "plateau"}, &spoilt_model::rate, &result::loss};
    const sw::reduce_on_plateau_hook by_default{&spoilt_model::rate, &result::loss};
    CHECK(named.state_name() == "plateau");
    STATIC_REQUIRE(std::same_as<decltype(named), decltype(by_default)>);
  }
  SECTION("best_checkpoint_hook") {
    CHECK(best_after(sw::best_checkpoint_hook{{.mode = sw::metric_mode::maximize}, &result::loss}) == 1);
    CHECK(best_after(sw::best_checkpoint_hook{{.mode = sw::metric_mode::maximize}, sw::tag("loss", &result::loss)}) == 1);
    CHECK(best_after(sw::best_checkpoint_hook{&result::loss}) == 1);
  }
}

TEST_CASE("a hook that watches a metric of an evaluation takes its options first, or none", "[hooks][options_order]") {
  const log_capture log;
  const auto tested =
      sw::evaluate_every(1, [](const spoilt_model& model) { return model.steps; }, sw::measure("steps", [](int steps) { return steps; }));
  const auto steps = tested.value("steps");

  SECTION("early_stopping_hook") { CHECK(steps_with(tested, sw::early_stopping_hook{{.patience = 3}, steps}) == 4); }
  SECTION("best_checkpoint_hook, which keeps the greatest value") {
    CHECK(best_after(tested, sw::best_checkpoint_hook{{.mode = sw::metric_mode::maximize}, steps}) == 3);
  }
  SECTION("best_checkpoint_hook without options") { CHECK(best_after(tested, sw::best_checkpoint_hook{steps}) == 1); }
  SECTION("reduce_on_plateau_hook") {
    const sw::reduce_on_plateau_hook named{{.name = "plateau"}, &spoilt_model::rate, steps};
    CHECK(named.state_name() == "plateau");
  }
}

TEST_CASE("a metric of an evaluation has its own name, or the name that a tag gives it", "[hooks][options_order]") {
  const auto tested = sw::evaluate_every(
      {.every = 1, .log = false}, [](const spoilt_model& /*model*/) { return 1; }, sw::measure("steps", [](int one) { return one; }));
  const auto steps = tested.value("steps");
  const auto named = sw::tag("number", steps);

  SECTION("early_stopping_hook") {
    const auto why_with = [&](auto hook) {
      spoilt_model model;
      sw::monitored_session session(model, tested, std::move(hook));
      return session.run_all().why.text;
    };
    CHECK_THAT(why_with(sw::early_stopping_hook{{.patience = 1}, steps}), ContainsSubstring("value of steps was 1"));
    CHECK_THAT(why_with(sw::early_stopping_hook{{.patience = 1}, named}), ContainsSubstring("value of number was 1"));
  }
  SECTION("the others") {
    const log_capture log;
    CHECK(best_after(tested, sw::best_checkpoint_hook{named}, sw::reduce_on_plateau_hook{&spoilt_model::rate, named},
                     sw::log_every(1, steps, named, &result::loss)) == 1);
    CHECK(log.contains(sw::log_level::info, "best: number 1 at step 1"));
    CHECK(log.contains(sw::log_level::info, "steps = 1, number = 1, value_2 = 1"));
  }
}

TEST_CASE("options may be a named object", "[hooks][options_order]") {
  const sw::early_stopping_options patient{.patience = 3};
  const sw::early_stopping_hook of_an_object{patient, &result::loss};
  const sw::early_stopping_hook of_a_list{{.patience = 3}, &result::loss};
  STATIC_REQUIRE(std::same_as<decltype(of_an_object), decltype(of_a_list)>);
}
