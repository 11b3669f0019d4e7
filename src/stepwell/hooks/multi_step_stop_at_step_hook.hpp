// SPDX-License-Identifier: Apache-2.0
//
// A hook that ends the loop at a step, for models that do several steps in one run.
// @see contract HOOK-MULTI-1
#pragma once

#include "stepwell/base/error.hpp"
#include "stepwell/hooks/stop_at_step_hook.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace stepwell {

/// Options of `multi_step_stop_at_step_hook`. Exactly one of `num_steps` and `last_step` is required.
struct multi_step_stop_at_step_options {
  std::optional<std::int64_t> num_steps = std::nullopt;
  std::optional<std::int64_t> last_step = std::nullopt;
  std::int64_t steps_per_run = 1;  ///< Maximum number of steps in a run, above zero.
};

/// A `stop_at_step_hook` for a model whose `step` does several steps and which counts them itself, by `global_step()`. Before each run it
/// provides the number of steps to do, so that the last run does not overshoot.
/// ```
/// sw::multi_step_stop_at_step_hook stop{{.last_step = 1000, .steps_per_run = 64}};
/// model.steps_to_make = stop.steps_per_run();     // std::shared_ptr<const std::int64_t>
/// ```
class multi_step_stop_at_step_hook {
public:
  /// @errors `invalid_argument_error` unless exactly one end is given, it is not negative, and `steps_per_run` is above zero.
  explicit multi_step_stop_at_step_hook(multi_step_stop_at_step_options options)
      : stop_({.num_steps = options.num_steps, .last_step = options.last_step}), most_(options.steps_per_run),
        next_(std::make_shared<std::int64_t>(options.steps_per_run)) {
    if (options.steps_per_run < 1) {
      throw invalid_argument_error("multi_step_stop_at_step_hook: invalid steps_per_run=" + std::to_string(options.steps_per_run) +
                                   "; it must be above zero");
    }
  }

  void after_create_session(auto& session, auto& threads) {
    stop_.after_create_session(session, threads);
    tell(session.global_step());
  }
  void after_run(auto& context, const auto& values) {
    stop_.after_run(context, values);
    tell(context.global_step());
  }

  /// Returns the number of steps that the next run should do: min(last_step - global_step, steps_per_run), at least zero.
  /// @threads Changed on the session's thread, between two runs.
  [[nodiscard]] std::shared_ptr<const std::int64_t> steps_per_run() const noexcept { return next_; }
  [[nodiscard]] std::int64_t last_step() const noexcept { return stop_.last_step(); }

private:
  void tell(std::int64_t step) { *next_ = step >= stop_.last_step() ? 0 : std::min(stop_.last_step() - step, most_); }

  stop_at_step_hook stop_;
  std::int64_t most_;
  std::shared_ptr<std::int64_t> next_;
};

}  // namespace stepwell
