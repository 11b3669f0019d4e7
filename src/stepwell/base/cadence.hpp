// SPDX-License-Identifier: Apache-2.0
//
// Periods in steps and seconds: options with three states (not set, off, a value), and a timer that triggers once in each period.
#pragma once

#include "stepwell/base/clock.hpp"
#include "stepwell/base/error.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <compare>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

namespace stepwell {

/// Switches a `setting` off: `.saves = {.save_secs = stepwell::none}`.
struct none_t {
  explicit constexpr none_t() = default;
};
inline constexpr none_t none{};

/// An option with three states: not set, off, or a value. Zero means off, too, as in TensorFlow. The code that uses the option rejects
/// negative numbers.
/// @see contract CREATE-2, CREATE-4 and PORT-1, decision D-31
template<class T>
class setting {
public:
  constexpr setting() = default;
  constexpr setting(none_t) : said_(true) {}
  template<class U>
    requires(std::is_convertible_v<U, T> && !std::is_same_v<std::remove_cvref_t<U>, setting>)
  constexpr setting(U&& value) : said_(true), value_(static_cast<T>(std::forward<U>(value))) {}

  [[nodiscard]] constexpr bool is_default() const noexcept { return !said_; }

  /// Returns the value, also if it is zero or negative. Returns nullopt if the option is not set or is `none`.
  [[nodiscard]] constexpr const std::optional<T>& given() const noexcept { return value_; }
  /// Returns the value if there is one above zero. Returns nullopt otherwise.
  [[nodiscard]] constexpr std::optional<T> enabled() const { return value_ && *value_ > T{} ? value_ : std::nullopt; }

private:
  bool said_ = false;
  std::optional<T> value_;
};

/// A number of seconds, the type of options in seconds. Can be constructed from `30`, `0.5` or a chrono duration.
class seconds_value {
public:
  constexpr seconds_value() = default;
  constexpr seconds_value(double seconds) : seconds_(seconds) {}
  template<class Rep, class Period>
  constexpr seconds_value(std::chrono::duration<Rep, Period> duration) : seconds_(std::chrono::duration<double>(duration).count()) {}

  [[nodiscard]] constexpr std::chrono::duration<double> duration() const noexcept { return std::chrono::duration<double>(seconds_); }
  [[nodiscard]] constexpr double count() const noexcept { return seconds_; }
  friend constexpr auto operator<=>(const seconds_value&, const seconds_value&) = default;

private:
  double seconds_ = 0;
};

namespace detail {

/// Throws if an option is negative or NaN. An option may be zero or not set.
/// @errors `invalid_argument_error` that names `option` and its value.
void refuse_negative(std::string_view option, std::int64_t value);
void refuse_negative(std::string_view option, int value);
void refuse_negative(std::string_view option, double value);
void refuse_negative(std::string_view option, seconds_value value);
template<class T>
void refuse_negative(std::string_view option, const std::optional<T>& value) {
  if (value) { refuse_negative(option, *value); }
}
template<class T>
void refuse_negative(std::string_view option, const setting<T>& value) {
  refuse_negative(option, value.given());
}

/// Returns `wait` as a duration, rounded up to the clock's ticks. Returns zero for a negative wait. Returns `duration::max()`, a wait
/// without end, for a wait of 100 years or more, because adding such a wait to a time would overflow the clock's ticks.
[[nodiscard]] clock::duration as_duration(seconds_value wait) noexcept;

/// Returns `start` plus `wait`, or `time_point::max()` for a wait without end.
[[nodiscard]] clock::time_point time_after(clock::time_point start, seconds_value wait) noexcept;

}  // namespace detail

/// The period of a timer, in seconds or in steps. Exactly one member must be set. `every_secs` takes chrono durations, not plain numbers.
struct cadence {
  std::optional<std::chrono::duration<double>> every_secs = std::nullopt;
  std::optional<std::int64_t> every_steps = std::nullopt;
};

/// Lower and upper bound for the interval between checkpoints, if a session chooses the interval by measurement (option `save_overhead`).
struct interval_bounds {
  seconds_value min_interval = 1;    ///< At least zero.
  seconds_value max_interval = 600;  ///< At least `min_interval`.
};
[[nodiscard]] constexpr bool operator==(const interval_bounds& a, const interval_bounds& b) noexcept {
  return a.min_interval == b.min_interval && a.max_interval == b.max_interval;
}

/// The time and the number of steps between two triggers.
struct elapsed_since_trigger {
  std::chrono::duration<double> seconds;
  std::int64_t steps;
};

/// Decides at which steps periodic work is due. The timer *triggers* at these steps.
/// With a period in seconds, the timer does not read the clock at each step. Instead it sets an alarm of the clock, and triggers at the
/// first step after this alarm.
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
    if (step < next_step_->load(std::memory_order_relaxed)) [[likely]] { return false; }
    return step != last_step_;
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
  void wake_after(seconds_value wait);

  static constexpr auto unset = std::numeric_limits<std::int64_t>::min();
  static constexpr auto never = std::numeric_limits<std::int64_t>::max();

  cadence period_;
  std::shared_ptr<clock> source_;
  shared_step next_step_ = never_comes();  // `unset` before the first trigger and after the alarm
  std::int64_t last_step_ = unset;
  clock::time_point last_time_;
  alarm alarm_;
};

/// The two options for one period, in steps and in seconds, with their names for messages ("saves.save_steps"). At most one of them
/// takes effect.
struct cadence_setting {
  std::string_view steps_name;
  setting<std::int64_t> steps;
  std::string_view secs_name;
  setting<seconds_value> secs;
};

/// Returns the cadence that the options select, or nullopt if they switch the periodic work off. Returns `otherwise` only if neither option
/// is set. If one option is set, even to `none` or 0, `otherwise` is not used.
/// If both are above zero, the seconds are used, and a warning names both options.
/// @errors `invalid_argument_error` if an option is negative; the message names the option.
/// @see contract CREATE-2 to CREATE-5, decisions D-8 and D-31
[[nodiscard]] std::optional<cadence> choose_cadence(const cadence_setting& said, std::optional<cadence> otherwise);
/// Like `choose_cadence`, for the periodic work of `owner`, which cannot be off.
/// @errors `invalid_argument_error` if the options switch the work off; the message names `owner` and the options.
[[nodiscard]] cadence require_cadence(std::string_view owner, const cadence_setting& said, std::optional<cadence> otherwise);

}  // namespace stepwell
