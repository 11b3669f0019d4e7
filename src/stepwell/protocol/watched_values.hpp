// SPDX-License-Identifier: Apache-2.0
//
// The newest values that the hooks of a session watch, for readers on other threads.
#pragma once

#include "stepwell/base/detail/locks.hpp"
#include "stepwell/protocol/session_metrics.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace stepwell {

/// The newest values of one session. Hooks publish them with a `value_publisher`.
/// @threads All functions may be called on any thread.
class watched_values {
public:
  /// Returns the values that have been published since the last creation of the session, in the order in which their names were added. Also
  /// requests newer values: `progress_hook` and the NaN guards then fetch them in the next run.
  [[nodiscard]] std::vector<history_value> read() const;
  /// Returns the number of calls of `read`. @cost One relaxed load.
  [[nodiscard]] std::uint64_t reads() const noexcept { return reads_.load(std::memory_order_relaxed); }

  /// Adds a name, unless it is known. Returns its number.
  [[nodiscard]] std::size_t add(std::string name);
  /// Stores `values` under the names with the numbers `slots`. An empty value changes nothing.
  /// @pre The spans have the same size.
  void store(std::span<const std::size_t> slots, std::span<const std::optional<double>> values, std::int64_t step);
  /// Drops all values. Names keep their numbers. Called in a recovery, because the values belong to the state that the recovery replaces.
  void clear();

private:
  friend class value_publisher;  // looks at `reads_` in each run

  struct watched_value {
    std::string name;
    std::optional<double> value = std::nullopt;
    std::int64_t step = 0;
  };

  mutable detail::checked_mutex mutex_;
  mutable std::atomic<std::uint64_t> reads_ = 0;
  std::vector<watched_value> values_ STEPWELL_GUARDED_BY(mutex_);
};

/// The values that one hook publishes.
/// @cost `publish` locks an uncontended mutex and allocates nothing.
class value_publisher {
public:
  /// Call this function after each creation of the session. If two hooks publish a value of the same name, `read` returns the newest one.
  void start(std::shared_ptr<watched_values> values, const std::vector<std::string>& names);
  /// Returns true if the values were read since the last call of `publish`: the hook should fetch and publish newer ones.
  /// @cost One relaxed load and one comparison.
  [[nodiscard]] bool is_wanted() const noexcept { return all_reads_->load(std::memory_order_relaxed) != reads_; }
  /// Publishes the values of `step`, one for each name. An empty one changes nothing. Does nothing before `start`.
  void publish(std::span<const std::optional<double>> values, std::int64_t step);
  /// Like `publish`, for a hook that publishes one value.
  void publish_one(double value, std::int64_t step);

private:
  static constexpr std::atomic<std::uint64_t> no_reads = 0;

  std::shared_ptr<watched_values> values_;
  std::vector<std::size_t> slots_;
  const std::atomic<std::uint64_t>* all_reads_ = &no_reads;  // of `values_`
  std::uint64_t reads_ = 0;                                  // at the last call of `publish`
};

}  // namespace stepwell
