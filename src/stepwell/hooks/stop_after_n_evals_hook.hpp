// SPDX-License-Identifier: Apache-2.0
//
// A hook that ends an evaluation after a number of steps.
// @see contract HOOK-MULTI-2
#pragma once

#include "stepwell/base/detail/refuse_negative.hpp"
#include "stepwell/hook/stop.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace stepwell {

/// Options of `stop_after_n_evals_hook`.
struct stop_after_n_evals_options {
  std::optional<std::int64_t> num_evals = std::nullopt;  ///< Empty: until the end of the data.
  bool log_progress = true;
};

/// Counts the runs of its session and requests a stop after `num_evals`. Logs "Evaluation [3/10]": after each run if `num_evals` is below
/// 20, else after about every tenth of the runs, and after the last. Without `num_evals`, logs "Evaluation [3]" after each run.
class stop_after_n_evals_hook {
public:
  /// @errors `invalid_argument_error` for a negative `num_evals`.
  /// @see contract D-31
  explicit stop_after_n_evals_hook(stop_after_n_evals_options options) : options_(options) {
    detail::refuse_negative("num_evals", options.num_evals);
  }

  void begin() { evals_completed_ = 0; }

  void after_create_session(auto& session, auto& /*threads*/) {
    if (is_done()) { session.request_stop(why()); }  // stops before the first run if `num_evals` is 0
  }

  void after_run(auto& context, const auto&) {
    ++evals_completed_;
    if (options_.log_progress) { log_progress(); }
    if (is_done()) { context.request_stop(why()); }
  }

  /// Returns the number of runs since the session began.
  [[nodiscard]] std::int64_t evals_completed() const noexcept { return evals_completed_; }

private:
  [[nodiscard]] bool is_done() const noexcept { return options_.num_evals && evals_completed_ >= *options_.num_evals; }
  [[nodiscard]] stop_reason why() const { return {stop_cause::last_step, std::to_string(evals_completed_) + " evaluation steps are done"}; }
  void log_progress() const;

  stop_after_n_evals_options options_;
  std::int64_t evals_completed_ = 0;
};

}  // namespace stepwell
