// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"
#include "support/log_capture.hpp"
#include "support/toy_model.hpp"

#include <stepwell/base/error.hpp>
#include <stepwell/hooks/early_stopping_hook.hpp>
#include <stepwell/hooks/nan_hooks.hpp>
#include <stepwell/hooks/scheduled_hook.hpp>
#include <stepwell/model/model_session.hpp>

#include <cmath>
#include <concepts>
#include <cstdint>

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

/// Runs a session with `hook` until the hook stops it. Returns the number of steps.
template<class Hook>
std::int64_t steps_with(Hook hook) {
  spoilt_model model;
  sw::monitored_session session(model, std::move(hook));
  return session.run_all().steps;
}

}  // namespace

TEST_CASE("a hook with one projection takes its options first or last", "[hooks][options_order]") {
  const log_capture log;

  SECTION("nan_tensor_hook") {
    CHECK(steps_with(sw::nan_tensor_hook{&result::loss, {.fail_on_nan_loss = false}}) == 2);
    CHECK(steps_with(sw::nan_tensor_hook{{.fail_on_nan_loss = false}, &result::loss}) == 2);
    CHECK(steps_with(sw::nan_tensor_hook{{.fail_on_nan_loss = false}, sw::tag("loss", &result::loss)}) == 2);
    CHECK(log.contains(sw::log_level::warning, "loss is nan"));
  }
  SECTION("early_stopping_hook") {
    CHECK(steps_with(sw::early_stopping_hook{&result::loss, {.patience = 3}}) == 4);
    CHECK(steps_with(sw::early_stopping_hook{{.patience = 3}, &result::loss}) == 4);
    CHECK(steps_with(sw::early_stopping_hook{{.patience = 3}, sw::tag("loss", &result::loss)}) == 4);
  }
  SECTION("rollback_on_nan_hook") {
    CHECK_THROWS_AS(steps_with(sw::rollback_on_nan_hook{&result::loss, sw::skip_batch{}, {.max_rollbacks = 0}}), sw::nan_loss_error);
    CHECK_THROWS_AS(steps_with(sw::rollback_on_nan_hook{{.max_rollbacks = 0}, &result::loss, sw::skip_batch{}}), sw::nan_loss_error);
    CHECK_THROWS_AS(steps_with(sw::rollback_on_nan_hook{{.max_rollbacks = 0}, &result::loss, [] {}}), sw::nan_loss_error);
  }
  SECTION("reduce_on_plateau_hook") {
    const sw::reduce_on_plateau_hook last{&spoilt_model::rate, &result::loss, {.name = "plateau"}};
    const sw::reduce_on_plateau_hook first{{.name = "plateau"}, &spoilt_model::rate, &result::loss};
    CHECK(first.state_name() == last.state_name());
  }
}

TEST_CASE("options in a named object are taken first or last, too", "[hooks][options_order]") {
  const sw::early_stopping_options patient{.patience = 3};
  const sw::early_stopping_hook last{&result::loss, patient};
  const sw::early_stopping_hook first{patient, &result::loss};
  STATIC_REQUIRE(std::same_as<decltype(first), decltype(last)>);
}
