// SPDX-License-Identifier: Apache-2.0
//
// Criteria to end training early: patience, and Prechelt's generalization loss. Works on plain numbers.
#pragma once

#include "stepwell/base/variable.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace stepwell {

/// Selects whether lower or higher values are better.
enum class early_stopping_mode { minimize, maximize };

/// Options of `early_stopping_hook`. At least one of `patience` and `generalization_loss` is required.
struct early_stopping_options {
  /// Stop after this number of consecutive values without an improvement.
  std::optional<std::int64_t> patience = std::nullopt;
  /// A value is an improvement if it is better than the best value by more than this.
  double min_delta = 0;
  early_stopping_mode mode = early_stopping_mode::minimize;
  /// Prechelt's alpha, in per cent: stop when 100 * (value / lowest - 1) exceeds it. Requires values that are not negative, and for which
  /// lower is better. ("Early stopping - but when?", 1998.)
  std::optional<double> generalization_loss = std::nullopt;
  /// The value is checked in the first run that reaches each multiple of this number of global steps.
  std::int64_t every_n_steps = 1;
  /// The name of the hook's state in checkpoints. Two such hooks in one session need different names.
  std::string name = "early_stopping";
};

namespace detail {

/// Tracks the best value, and decides when to stop.
class early_stopping {
public:
  /// @errors `invalid_argument_error` for invalid options.
  early_stopping(std::string what, early_stopping_options options);

  /// Discards all values.
  void begin() noexcept;
  /// Sets the step after which the session continues.
  void start(std::int64_t step) noexcept { looked_at_ = step / options_.every_n_steps; }
  /// Returns true if the value of a run that ends at `step` should be checked.
  [[nodiscard]] bool is_due(std::int64_t step) const noexcept { return step / options_.every_n_steps > looked_at_; }

  /// Adds a value.
  /// @errors `invalid_argument_error` if generalization loss is used and the value is negative.
  void take(double value, std::int64_t step);
  /// Returns the reason to stop, or empty if training should continue.
  [[nodiscard]] std::optional<std::string> verdict() const;

  [[nodiscard]] std::optional<double> best() const noexcept { return best_step_ < 0 ? std::nullopt : std::optional(best_); }
  [[nodiscard]] std::optional<std::int64_t> best_step() const noexcept { return best_step_ < 0 ? std::nullopt : std::optional(best_step_); }
  [[nodiscard]] std::int64_t waited() const noexcept { return waited_; }

  [[nodiscard]] variable_list variables();
  [[nodiscard]] const std::string& name() const noexcept { return options_.name; }

private:
  [[nodiscard]] bool is_improvement(double value) const noexcept;
  [[nodiscard]] double loss_now() const noexcept;

  std::string what_;
  early_stopping_options options_;
  std::int64_t looked_at_ = 0;

  // The saved state.
  double best_ = 0;
  std::int64_t best_step_ = -1;  // -1: no value yet
  double lowest_ = 0;            // for generalization loss: ignores min_delta
  double last_ = 0;
  std::int64_t waited_ = 0;
};

}  // namespace detail
}  // namespace stepwell
