// SPDX-License-Identifier: Apache-2.0
//
// When training is over: patience, and Prechelt's generalization loss. Knows numbers only.
#pragma once

#include "stepwell/base/variable.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace stepwell {

/// Whether lower or higher numbers are better.
enum class early_stopping_mode { minimize, maximize };

/// At least one of `patience` and `generalization_loss`.
struct early_stopping_options {
  /// So many values in a row that are no improvement.
  std::optional<std::int64_t> patience = std::nullopt;
  /// An improvement is better than the best one by more than this.
  double min_delta = 0;
  early_stopping_mode mode = early_stopping_mode::minimize;
  /// Prechelt's alpha, in per cent: stop when 100 * (value / lowest - 1) is above it. For numbers that are not negative,
  /// the lower the better. ("Early stopping - but when?", 1998.)
  std::optional<double> generalization_loss = std::nullopt;
  /// Looks at the first run that reaches each multiple of so many global steps.
  std::int64_t every_n_steps = 1;
  /// What its state is called in checkpoints; two in one session must be named apart.
  std::string name = "early_stopping";
};

namespace detail {

/// Counts, and says when it is enough.
class early_stopping {
public:
  /// @errors `invalid_argument_error` for options that make no sense.
  early_stopping(std::string what, early_stopping_options options);

  /// Nothing was seen yet.
  void begin() noexcept;
  /// The session goes on after `step`.
  void start(std::int64_t step) noexcept { looked_at_ = step / options_.every_n_steps; }
  /// Whether to look at a run that ends at `step`.
  [[nodiscard]] bool is_due(std::int64_t step) const noexcept { return step / options_.every_n_steps > looked_at_; }

  /// @errors `invalid_argument_error` as the hook says.
  void take(double value, std::int64_t step);
  /// Why to stop, if so.
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

  // The state.
  double best_ = 0;
  std::int64_t best_step_ = -1;  // none yet
  double lowest_ = 0;            // as far as generalization loss goes: without min_delta
  double last_ = 0;
  std::int64_t waited_ = 0;
};

}  // namespace detail
}  // namespace stepwell
