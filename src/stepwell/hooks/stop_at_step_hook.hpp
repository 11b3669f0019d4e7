// SPDX-License-Identifier: Apache-2.0
//
// A hook that ends the loop at a step.
// @see contract HOOK-STOP, D-6
#pragma once

#include "stepwell/base/detail/refuse_negative.hpp"
#include "stepwell/base/error.hpp"
#include "stepwell/hook/stop.hpp"

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

namespace stepwell {

/// Options of `stop_at_step_hook`. Exactly one of them is required.
struct stop_at_step_options {
  std::optional<std::int64_t> num_steps = std::nullopt;  ///< Number of steps after the step at which the first session starts.
  std::optional<std::int64_t> last_step = std::nullopt;  ///< The global step after which to stop.
};

/// Requests a stop when the global step reaches the last step. A session that is restored at or beyond the last step does no step.
/// @cost One comparison for each run.
/// @see contract D-6
class stop_at_step_hook {
public:
  /// @errors `invalid_argument_error` if neither or both are given, or one is negative.
  /// @see contract D-31
  explicit stop_at_step_hook(stop_at_step_options options) : num_steps_(options.num_steps) {
    if (options.num_steps.has_value() == options.last_step.has_value()) {
      throw invalid_argument_error("stop_at_step_hook: exactly one of num_steps and last_step must be specified");
    }
    detail::refuse_negative("num_steps", options.num_steps);
    detail::refuse_negative("last_step", options.last_step);
    if (options.last_step) { last_step_ = *options.last_step; }
  }

  void after_create_session(auto& session, auto& /*threads*/) {
    if (num_steps_) {
      if (__builtin_add_overflow(std::int64_t{session.global_step()}, *num_steps_, &last_step_)) {
        last_step_ = std::numeric_limits<std::int64_t>::max();
      }
      num_steps_.reset();  // only once: a recovery does not change the last step
    }
    stop_if_reached(session);
  }
  void after_run(auto& context, const auto&) { stop_if_reached(context); }

  [[nodiscard]] std::int64_t last_step() const noexcept { return last_step_; }

private:
  void stop_if_reached(auto& session) {
    if (session.global_step() >= last_step_) [[unlikely]] { stop(session); }
  }
  [[gnu::noinline, gnu::cold]] void stop(auto& session) const {
    session.request_stop({stop_cause::last_step, "step " + std::to_string(last_step_) + " is done"});
  }

  std::optional<std::int64_t> num_steps_;
  std::int64_t last_step_ = std::numeric_limits<std::int64_t>::max();
};

}  // namespace stepwell
