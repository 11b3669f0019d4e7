// SPDX-License-Identifier: Apache-2.0
//
// The times of events. Reading the time of day exactly takes longer than the rest of a scalar event, so events that follow each other closely
// share one reading.
#pragma once

#include "stepwell/base/clock.hpp"
#include "stepwell/base/detail/platform.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

namespace stepwell::summary {

/// Returns the times of events, in seconds since 1970. The first event in each tick of the kernel (a few milliseconds) has the exact time,
/// and later events of the same tick have the time of the first. Each event has the exact time with another clock than `system_clock()`, and
/// on systems without a fast clock of ticks.
/// @threads Any.
class event_time {
public:
  explicit event_time(std::shared_ptr<clock> time) : time_(std::move(time)), has_ticks_(time_ == system_clock()) {}

  [[nodiscard]] double now() {
    const auto tick = has_ticks_ ? stepwell::detail::platform::clock_tick() : std::nullopt;
    if (!tick) { return read(); }
    if (tick_.load(std::memory_order_acquire) == *tick) [[likely]] { return seconds_.load(std::memory_order_relaxed); }
    const double seconds = read();
    seconds_.store(seconds, std::memory_order_relaxed);
    tick_.store(*tick, std::memory_order_release);
    return seconds;
  }

private:
  [[nodiscard]] double read() const {
    // Microseconds are exact in a double until the year 2255. A direct conversion of nanoseconds would be off by hundreds of nanoseconds.
    using std::chrono::microseconds;
    const auto now = std::chrono::duration_cast<microseconds>(time_->wall_now().time_since_epoch());
    return static_cast<double>(now.count()) / 1e6;
  }

  std::shared_ptr<clock> time_;
  bool has_ticks_;
  std::atomic<std::int64_t> tick_ = 0;  // the tick in which `seconds_` was read
  std::atomic<double> seconds_ = 0;
};

}  // namespace stepwell::summary
