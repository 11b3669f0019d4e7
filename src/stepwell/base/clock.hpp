// SPDX-License-Identifier: Apache-2.0
//
// Clocks and deadlines. Sessions and hooks read the time, wait, and set alarms only through a `clock`. A `manual_clock` can therefore drive
// threads, cadences and Asio timers in tests.
#pragma once

#include "stepwell/base/detail/locks.hpp"

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

namespace stepwell {

/// A source of the current time, of alarms, and of waits with a deadline.
/// @threads All functions may be called from any thread.
class clock {
public:
  using duration = std::chrono::steady_clock::duration;
  using time_point = std::chrono::steady_clock::time_point;
  using wall_time = std::chrono::system_clock::time_point;
  using alarm_id = std::uint64_t;

  clock() = default;
  clock(const clock&) = delete;
  clock& operator=(const clock&) = delete;
  virtual ~clock() = default;

  /// Returns the monotonic time, for intervals.
  [[nodiscard]] virtual time_point now() const = 0;
  /// Returns the time of day, for event files.
  [[nodiscard]] virtual wall_time wall_now() const = 0;

  /// Sets an alarm: the clock calls `action` once, at `when` or later, but never inside this call of `call_at`. Returns the id of the
  /// alarm. `action` must be short and must not throw.
  /// @threads `action` runs on a thread of the clock. With a `manual_clock`, it runs on the thread that calls `advance`.
  /// @errors `resource_exhausted_error` if the clock needs a thread and the system cannot start one.
  virtual alarm_id call_at(time_point when, std::function<void()> action) = 0;
  /// Cancels the alarm `id`. If its action is running, waits until the action has ended. The action is not called after this function
  /// returns. If the action itself calls `cancel`, the call does not wait, and the action runs to its end.
  /// @pre The caller holds no lock that the action takes, because this function may wait for the action.
  virtual void cancel(alarm_id id) = 0;

  /// Waits on `condition` until it is notified, at most until `when`. Returns false if `when` was reached. Spurious wakeups are possible.
  /// @pre `lock` is held.
  virtual bool wait_until(std::unique_lock<std::mutex>& lock, std::condition_variable& condition, time_point when) = 0;

  /// Waits until `done()` returns true, at most until `when`. Returns the last value of `done()`.
  template<class Predicate>
  bool wait_until(std::unique_lock<std::mutex>& lock, std::condition_variable& condition, time_point when,
                  Predicate done) STEPWELL_UNCHECKED_LOCKS {  // the lock of `done` is `lock`
    while (!done()) {
      if (!wait_until(lock, condition, when)) { return done(); }
    }
    return true;
  }

  /// Blocks the calling thread until `when`.
  void sleep_until(time_point when);
  void sleep_for(duration length) { sleep_until(now() + length); }
};

/// Returns the clock of the machine. The actions of its alarms run on one thread, which is started with the first alarm.
[[nodiscard]] std::shared_ptr<clock> system_clock();

/// Owner of an alarm. The destructor cancels the alarm.
class alarm {
public:
  alarm() = default;
  alarm(std::shared_ptr<clock> source, clock::time_point when, std::function<void()> action)
      : source_(std::move(source)), id_(source_->call_at(when, std::move(action))) {}
  alarm(alarm&& other) noexcept : source_(std::exchange(other.source_, nullptr)), id_(other.id_) {}
  alarm& operator=(alarm&& other) noexcept {
    if (this != &other) {
      cancel();
      source_ = std::exchange(other.source_, nullptr);
      id_ = other.id_;
    }
    return *this;
  }
  ~alarm() { cancel(); }

  void cancel() {
    if (auto source = std::exchange(source_, nullptr)) { source->cancel(id_); }
  }

private:
  std::shared_ptr<clock> source_;
  clock::alarm_id id_ = 0;
};

/// A point in time on the clock `source`. It can be converted to a point in time on another clock.
class deadline {
public:
  deadline(const clock& source, clock::time_point when) noexcept : source_(&source), when_(when) {}

  /// Returns a deadline that never passes.
  [[nodiscard]] static deadline never(const clock& source) noexcept { return {source, clock::time_point::max()}; }

  /// Returns the time of `other` at which the deadline passes. The remaining time is the same on both clocks.
  [[nodiscard]] clock::time_point on(const clock& other) const {
    if (&other == source_ || when_ == clock::time_point::max()) { return when_; }
    return other.now() + (when_ - source_->now());
  }
  /// Returns the remaining time. Returns zero if the deadline has passed.
  [[nodiscard]] clock::duration remaining() const {
    if (when_ == clock::time_point::max()) { return clock::duration::max(); }
    const auto left = when_ - source_->now();
    return left > clock::duration::zero() ? left : clock::duration::zero();
  }

private:
  const clock* source_;
  clock::time_point when_;
};

namespace detail {
/// Returns the deadline that passes first.
[[nodiscard]] inline deadline earlier_of(const deadline& one, const deadline& other) {
  return one.remaining() < other.remaining() ? one : other;
}
/// Returns a time of day in seconds since 1970.
[[nodiscard]] inline double wall_seconds(clock::wall_time when) { return std::chrono::duration<double>(when.time_since_epoch()).count(); }
}  // namespace detail

/// A manual clock for tests and simulations. Its time changes only by `advance`.
class manual_clock final : public clock {
public:
  /// Creates a clock whose time of day is `wall`. The monotonic time starts at an arbitrary fixed point.
  explicit manual_clock(wall_time wall = wall_time(std::chrono::seconds(1'700'000'000)));

  [[nodiscard]] time_point now() const override;
  [[nodiscard]] wall_time wall_now() const override;
  alarm_id call_at(time_point when, std::function<void()> action) override;
  void cancel(alarm_id id) override;
  using clock::wait_until;
  bool wait_until(std::unique_lock<std::mutex>& lock, std::condition_variable& condition, time_point when) override;

  /// Moves time forward by `length`. Calls, on this thread, the actions of the alarms that become due, in the order of their times. Actions
  /// of alarms with equal times are called in the order in which the alarms were set. Concurrent calls of `advance` run one after the
  /// other.
  /// @pre `length` is at least zero. The caller is not the action of an alarm. The caller holds no lock that an action or a waiting thread
  ///   takes.
  void advance(duration length);
  /// Returns the number of pending alarms: those that are not cancelled and whose actions were not called yet. Each thread that waits on
  /// this clock counts as one alarm, so a test can detect that a thread waits.
  [[nodiscard]] std::size_t pending() const;
  /// Blocks until at least `count` alarms are pending, for at most 10 s of real time. Returns false after these 10 s.
  [[nodiscard]] bool wait_for_pending(std::size_t count) const;

private:
  struct entry {
    alarm_id id;
    std::function<void()> action;
  };

  [[nodiscard]] time_point now_locked() const noexcept STEPWELL_HOLDS(mutex_);
  alarm_id call_at_locked(time_point when, std::function<void()> action) STEPWELL_HOLDS(mutex_);

  mutable detail::checked_mutex mutex_;
  mutable std::condition_variable changed_;
  duration elapsed_ STEPWELL_GUARDED_BY(mutex_){};
  const wall_time start_;
  alarm_id next_id_ STEPWELL_GUARDED_BY(mutex_) = 1;
  alarm_id running_ STEPWELL_GUARDED_BY(mutex_) = 0;  // the alarm whose action runs now; 0 if none
  void* runner_ STEPWELL_GUARDED_BY(mutex_) =
      nullptr;  // address of a thread-local object of the thread that runs `advance`; null if there is none
  std::multimap<time_point, entry> alarms_ STEPWELL_GUARDED_BY(mutex_);
};

}  // namespace stepwell
