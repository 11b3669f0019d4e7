// SPDX-License-Identifier: Apache-2.0
//
// A clock whose time advances only by waits, and whose waits return at once. Hours pass in one thread without a race.
#pragma once

#include <stepwell/base/clock.hpp>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

namespace stepwell::test {

/// A clock for one thread. Alarms never fire.
/// @threads One.
class leaping_clock final : public clock {
public:
  time_point time{std::chrono::hours(1)};
  std::vector<duration> waits;  ///< The length of each wait.
  /// Called within each wait, with its number (from 1). It stands for the work of others during the wait.
  std::function<void(std::size_t)> meanwhile = nullptr;

  [[nodiscard]] time_point now() const override { return time; }
  [[nodiscard]] wall_time wall_now() const override {
    return wall_time(std::chrono::duration_cast<wall_time::duration>(time.time_since_epoch()));
  }
  alarm_id call_at(time_point /*when*/, std::function<void()> /*action*/) override { return 0; }
  void cancel(alarm_id /*id*/) override {}

  using clock::wait_until;
  bool wait_until(std::unique_lock<std::mutex>& lock, std::condition_variable& /*condition*/, time_point when) override {
    waits.push_back(when - time);
    time = when;
    lock.unlock();
    if (meanwhile) { meanwhile(waits.size()); }
    lock.lock();
    return false;
  }
};

}  // namespace stepwell::test
