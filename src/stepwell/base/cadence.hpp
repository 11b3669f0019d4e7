// SPDX-License-Identifier: Apache-2.0
//
// A timer that triggers every n steps or every t seconds. All hooks use it.
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

/// The period of a timer, in seconds or in steps. Exactly one member must be set.
struct cadence {
  std::optional<std::chrono::duration<double>> every_secs = std::nullopt;
  std::optional<std::int64_t> every_steps = std::nullopt;
};

/// The time and the number of steps between two triggers.
struct elapsed_since_trigger {
  std::chrono::duration<double> seconds;
  std::int64_t steps;
};

/// Decides at which steps periodic work is due.
/// In seconds mode the timer does not read the clock at each step. It sets an alarm, and the alarm makes the next step trigger.
/// A default-constructed timer never triggers, like TensorFlow's NeverTriggerTimer.
/// @threads One thread at a time. The alarm may run on a thread of the clock.
/// @see contract HOOK-TIMER
class second_or_step_timer {
public:
  second_or_step_timer() = default;

  /// Creates a timer that triggers at its first step, and then once in each `period`.
  /// @errors `invalid_argument_error` if neither or both members of `period` are set.
  /// @see contract HOOK-TIMER-1, HOOK-TIMER-2
  explicit second_or_step_timer(cadence period, std::shared_ptr<clock> source = system_clock());

  /// Returns true if the timer has not triggered yet, or if the period has passed since the last trigger. Returns false for the step
  /// that triggered last.
  /// @cost One relaxed load and one comparison.
  /// @see contract HOOK-TIMER-3
  [[nodiscard]] bool should_trigger_for_step(std::int64_t step) const noexcept {
    return step >= next_step_->load(std::memory_order_relaxed) && step != last_step_;
  }

  /// Records `step` as the last trigger. Returns the time and the steps since the previous trigger, or nullopt if there was none.
  std::optional<elapsed_since_trigger> update_last_triggered_step(std::int64_t step);

  [[nodiscard]] std::optional<std::int64_t> last_triggered_step() const noexcept;

  /// Clears the last trigger, so that the next step triggers.
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
  shared_step next_step_ = never_comes();  // `unset` before the first trigger and after the alarm
  std::int64_t last_step_ = unset;
  clock::time_point last_time_;
  alarm alarm_;
};

}  // namespace stepwell
