// SPDX-License-Identifier: Apache-2.0
//
// Every n steps, or every t seconds: one type for all hooks (contract HOOK-TIMER).
#pragma once

#include "stepwell/base/clock.hpp"
#include "stepwell/base/error.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>

namespace stepwell {

/// What a cadence is made of. Exactly one must be given.
struct cadence {
  std::optional<std::chrono::duration<double>> every_secs = std::nullopt;
  std::optional<std::int64_t> every_steps = std::nullopt;
};

/// What passed between two triggers.
struct elapsed_since_trigger {
  std::chrono::duration<double> seconds;
  std::int64_t steps;
};

/// Says when the next time has come. In seconds mode no clock is read per step: an alarm has the next step come at once.
/// A timer made of no cadence never triggers (TensorFlow's NeverTriggerTimer).
/// @threads One thread at a time; the alarm comes from the clock's.
class second_or_step_timer {
public:
  second_or_step_timer() = default;

  /// @errors `invalid_argument_error` when neither or both are given (HOOK-TIMER-1, 2).
  explicit second_or_step_timer(cadence period, std::shared_ptr<clock> source = system_clock());

  /// True when never triggered; false for the step that triggered last; else when the period has passed (HOOK-TIMER-3).
  /// @cost One relaxed load and one comparison.
  [[nodiscard]] bool should_trigger_for_step(std::int64_t step) const noexcept {
    return step >= next_step_->load(std::memory_order_relaxed) && step != last_step_;
  }

  /// Takes `step` as the last that triggered; what passed since the one before, if there was one.
  std::optional<elapsed_since_trigger> update_last_triggered_step(std::int64_t step);

  [[nodiscard]] std::optional<std::int64_t> last_triggered_step() const noexcept;

  /// Forgets the last trigger: the next step triggers.
  void reset();

  [[nodiscard]] bool never_triggers() const noexcept { return source_ == nullptr; }

private:
  using shared_step = std::shared_ptr<std::atomic<std::int64_t>>;

  [[nodiscard]] static const shared_step& never_comes();
  void wake_after(std::chrono::duration<double> wait);

  static constexpr auto unset = std::numeric_limits<std::int64_t>::min();
  static constexpr auto never = std::numeric_limits<std::int64_t>::max();

  cadence period_;
  std::shared_ptr<clock> source_;
  shared_step next_step_ = never_comes();  // `unset` before the first trigger, and when the alarm went off
  std::int64_t last_step_ = unset;
  clock::time_point last_time_;
  alarm alarm_;
};

}  // namespace stepwell
