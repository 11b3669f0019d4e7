// SPDX-License-Identifier: Apache-2.0
//
// A raw session whose steps evaluate a model without training it.
#pragma once

#include "stepwell/base/variable.hpp"
#include "stepwell/model/model_session.hpp"
#include "stepwell/model/model_traits.hpp"

#include <cstdint>
#include <utility>

namespace stepwell {

/// Runs the steps of a model as evaluations: the global step does not change.
/// @lifetime The model must outlive the session.
template<trainable_model Model>
class evaluation_session {
  using steps = model_session<Model>;

public:
  using model_type = Model;
  using result_type = typename steps::result_type;
  using outcome_type = typename steps::outcome_type;

  /// Creates the session over `model`. `global_step` is the step of the checkpoint from which the model was restored.
  evaluation_session(Model& model, std::int64_t global_step) : steps_(model), global_step_(global_step) {}

  /// Does one step.
  /// @errors Exceptions of `step`.
  template<class Requests, class... Args>
  outcome_type run(const Requests& requests, Args&&... args) {
    auto outcome = steps_.run(requests, std::forward<Args>(args)...);
    outcome.step_before = outcome.step_after = global_step_;
    return outcome;
  }

  /// Feeds members of the model until the returned value is destroyed.
  /// @see `model_session::feed`
  template<class Order>
  [[nodiscard]] auto feed(const Order& order) const {
    return steps_.feed(order);
  }

  template<class Projection>
    requires requires(const steps& all, const outcome_type& outcome, const Projection& projection) { all.read(outcome, projection); }
  [[nodiscard]] decltype(auto) read(const outcome_type& outcome, const Projection& projection) const {
    return steps_.read(outcome, projection);
  }

  [[nodiscard]] std::int64_t global_step() const noexcept { return global_step_; }
  [[nodiscard]] variable_list variables() { return steps_.variables(); }
  [[nodiscard]] Model& model() const noexcept { return steps_.model(); }

private:
  steps steps_;
  std::int64_t global_step_;
};

}  // namespace stepwell
