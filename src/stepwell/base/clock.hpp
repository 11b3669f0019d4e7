// SPDX-License-Identifier: Apache-2.0
//
// Time, and the only place that waits for it. Everything above reads and waits through a `clock`, so that a held
// clock can drive threads, cadences and Asio timers alike.
#pragma once

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

/// A source of time that can also wait for it.
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

  /// Monotonic time, for intervals.
  [[nodiscard]] virtual time_point now() const = 0;
  /// Time of day, for event files.
  [[nodiscard]] virtual wall_time wall_now() const = 0;

  /// Calls `action` once `when` has come, on a thread of the clock's (a held clock: on the one that advances it),
  /// never from within this call. `action` must be short and must not throw.
  /// @errors `resource_exhausted_error` if the clock needs a thread and the system has no more.
  virtual alarm_id call_at(time_point when, std::function<void()> action) = 0;
  /// Forgets an alarm. When it returns, the action is not running and will not run, unless it is the action that calls.
  /// @pre The caller holds no lock that the action takes: it may have to wait for the action.
  virtual void cancel(alarm_id id) = 0;

  /// Waits on `condition` until notified or until `when`; false if `when` has come. May wake for no reason.
  /// @pre `lock` is held.
  virtual bool wait_until(std::unique_lock<std::mutex>& lock, std::condition_variable& condition, time_point when) = 0;

  /// Waits until `done()` or until `when`; what `done()` says at the end.
  template<class Predicate>
  bool wait_until(std::unique_lock<std::mutex>& lock, std::condition_variable& condition, time_point when, Predicate done) {
    while (!done()) {
      if (!wait_until(lock, condition, when)) { return done(); }
    }
    return true;
  }

  /// Waits until `when`.
  void sleep_until(time_point when);
  void sleep_for(duration length) { sleep_until(now() + length); }
};

/// The clock of the machine. Alarms run on one thread, started with the first of them.
[[nodiscard]] std::shared_ptr<clock> system_clock();

/// An alarm that is forgotten with its owner.
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

/// A clock that stands still until told to move: the twin of the system clock for tests and simulations.
class held_clock final : public clock {
public:
  /// Starts at `wall`; monotonic time starts at an arbitrary fixed point.
  explicit held_clock(wall_time wall = wall_time(std::chrono::seconds(1'700'000'000)));

  [[nodiscard]] time_point now() const override;
  [[nodiscard]] wall_time wall_now() const override;
  alarm_id call_at(time_point when, std::function<void()> action) override;
  void cancel(alarm_id id) override;
  using clock::wait_until;
  bool wait_until(std::unique_lock<std::mutex>& lock, std::condition_variable& condition, time_point when) override;

  /// Moves time forward, running the alarms that come due, in order of time, on this thread; those of equal time in
  /// the order in which they were set. A second thread that advances meanwhile waits its turn.
  /// @pre `length` is not negative; not called by an alarm, nor with a lock held that an alarm or a waiter takes.
  void advance(duration length);
  /// Alarms not yet due, those of waiting threads included: how a test knows that somebody waits.
  [[nodiscard]] std::size_t pending() const;
  /// Blocks (in real time, at most ten seconds) until at least `count` alarms are pending; false if it never came.
  [[nodiscard]] bool wait_for_pending(std::size_t count) const;

private:
  struct entry {
    alarm_id id;
    std::function<void()> action;
  };

  [[nodiscard]] time_point now_locked() const noexcept;
  alarm_id call_at_locked(time_point when, std::function<void()> action);
  void run_first(std::unique_lock<std::mutex>& lock);

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  duration elapsed_{};
  wall_time start_;
  alarm_id next_id_ = 1;
  alarm_id running_ = 0;    // whose action runs now
  void* runner_ = nullptr;  // the mark of the thread that advances
  std::multimap<time_point, entry> alarms_;
};

}  // namespace stepwell
