// SPDX-License-Identifier: Apache-2.0
//
// The interval between checkpoints that keeps the cost of saving within a share of the training time.
#pragma once

#include "stepwell/base/cadence.hpp"
#include "stepwell/base/clock.hpp"
#include "stepwell/hooks/detail/rare_log.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace stepwell::detail {

/// The options that say when to save, with their names for messages.
struct saves_setting {
  cadence_setting periods;
  std::string_view overhead_name;
  setting<double> overhead;
  std::string_view bounds_name;
  interval_bounds bounds;
};

/// Checks the bounds of an interval.
/// @errors `invalid_argument_error` if a bound is negative, or if the bounds contradict each other.
void check_bounds(const interval_bounds& bounds);

/// When to save: in each `period` or, if there is a `share`, at the interval that keeps the cost of saving within this share of the time.
struct save_schedule {
  cadence period;
  std::optional<double> share;
  interval_bounds bounds;
};

/// Returns the schedule that the options select, or nullopt if they switch saving off. If none of them is set, the period is `otherwise`.
/// @errors `invalid_argument_error` if a period is negative, if the overhead is not a share from 0 to 1, if the bounds are negative or
///   contradict each other, if bounds are given without the overhead, or if a period and the overhead are both above zero; the message
///   names the options.
[[nodiscard]] std::optional<save_schedule> choose_saves(const saves_setting& said, std::optional<cadence> otherwise);

/// Measures the cost of each save and chooses the interval to the next one.
/// The cost has two parts. The stall is the time from the request until the state is copied. The slowdown is the time that the steps
/// took until the save ended, minus the time of as many steps without a save. The means of both decrease exponentially with age: each save
/// has half the weight of the next one.
/// @threads One thread at a time.
class save_budget {
public:
  /// @pre `choose_saves` returned the arguments. `directory` is for log messages.
  save_budget(double share, const interval_bounds& bounds, std::string directory);

  /// Begins with a session: its clock, and its name for log messages. Keeps the means of previous sessions, but drops a save in flight.
  void start(std::shared_ptr<clock> time, std::string session = {});
  /// Records that a save was requested. Drops the measurement of a save in flight.
  void begin(std::int64_t step);
  /// Records that the state was copied.
  void accept();
  /// Returns true if a save was requested and has not ended.
  [[nodiscard]] bool is_saving() const noexcept { return requested_.has_value(); }
  /// Records that the save has ended. Returns the time until the next save is due. Logs the interval if it differs by more than a fifth
  /// from the one logged last, and if that was 10 s ago.
  /// @pre `is_saving()`.
  [[nodiscard]] clock::duration end(std::int64_t step);

  /// Returns the interval between the requests of two saves. The smallest permitted one if nothing was measured.
  [[nodiscard]] std::chrono::duration<double> interval() const noexcept;

private:
  using seconds = std::chrono::duration<double>;
  struct moment {
    clock::time_point time;
    std::int64_t step;
  };

  void measure(const moment& ended);
  void log_interval(clock::time_point now);

  rare_log log_{10};
  std::string session_;
  double share_;
  interval_bounds bounds_;
  std::string directory_;
  std::shared_ptr<clock> clock_;
  std::optional<moment> requested_;
  std::optional<clock::time_point> accepted_;
  std::optional<moment> ended_;    // the end of the previous save
  std::optional<seconds> step_;    // a step without a save, from the end of the previous save to the request of this one
  std::optional<seconds> stall_;   // mean
  std::optional<seconds> slowed_;  // mean; negative if the steps were faster by chance
  std::optional<seconds> logged_;
};

}  // namespace stepwell::detail
