// SPDX-License-Identifier: Apache-2.0
#include "stepwell/base/clock.hpp"

#include "stepwell/base/detail/locks.hpp"
#include "stepwell/base/detail/thread.hpp"
#include "stepwell/base/error.hpp"

#include <cassert>
#include <thread>

namespace stepwell {
namespace {

/// Identifies this thread by its address, so that an alarm can cancel itself without a deadlock.
thread_local char this_thread_mark = 0;

/// Start of the monotonic time of a `manual_clock`. It is not zero, so that earlier times can be represented.
constexpr clock::time_point held_origin{std::chrono::hours(1)};

/// Runs the first alarm with `mutex` released. Sets `running` to its id during the call, so that `cancel` can wait for its end.
template<class Alarms>
void run_first_alarm(detail::checked_mutex& mutex, Alarms& alarms, clock::alarm_id& running, std::condition_variable& changed)
    STEPWELL_HOLDS(mutex) {
  auto first = std::move(alarms.begin()->second);
  alarms.erase(alarms.begin());
  running = first.id;
  {
    const detail::mutex_unlock released(mutex);
    first.action();
    first.action = nullptr;
  }
  running = 0;
  changed.notify_all();
}

class machine_clock final : public clock {
public:
  ~machine_clock() override {
    {
      const detail::mutex_lock lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) { thread_.join(); }
  }

  [[nodiscard]] time_point now() const override { return std::chrono::steady_clock::now(); }
  [[nodiscard]] wall_time wall_now() const override { return std::chrono::system_clock::now(); }

  alarm_id call_at(time_point when, std::function<void()> action) override {
    const detail::mutex_lock lock(mutex_);
    if (!thread_.joinable()) {
      thread_ = value_or_throw(detail::start_thread("stepwell clock", [this] { run(); }));
    }
    const auto id = next_id_++;
    alarms_.emplace(when, entry{id, std::move(action)});
    changed_.notify_all();
    return id;
  }

  void cancel(alarm_id id) override {
    detail::mutex_lock lock(mutex_);
    std::erase_if(alarms_, [id](const auto& alarm) { return alarm.second.id == id; });
    if (std::this_thread::get_id() == thread_.get_id()) { return; }
    changed_.wait(lock, [&]() STEPWELL_HOLDS(mutex_) { return running_ != id; });
  }

  using clock::wait_until;
  bool wait_until(std::unique_lock<std::mutex>& lock, std::condition_variable& condition, time_point when) override {
    const detail::observed_wait here;
    return condition.wait_until(lock, when) == std::cv_status::no_timeout;
  }

private:
  struct entry {
    alarm_id id;
    std::function<void()> action;
  };

  void run() {
    detail::mutex_lock lock(mutex_);
    while (!stopping_) {
      if (alarms_.empty()) {
        changed_.wait(lock);
      } else if (const auto when = alarms_.begin()->first; when > std::chrono::steady_clock::now()) {
        changed_.wait_until(lock, when);
      } else {
        run_first_alarm(mutex_, alarms_, running_, changed_);
      }
    }
  }

  detail::checked_mutex mutex_;
  std::condition_variable changed_;
  std::multimap<time_point, entry> alarms_ STEPWELL_GUARDED_BY(mutex_);
  alarm_id next_id_ STEPWELL_GUARDED_BY(mutex_) = 1;
  alarm_id running_ STEPWELL_GUARDED_BY(mutex_) = 0;
  bool stopping_ STEPWELL_GUARDED_BY(mutex_) = false;
  detail::owned_thread thread_ STEPWELL_GUARDED_BY(mutex_);
};

}  // namespace

void clock::sleep_until(time_point when) {
  std::mutex mutex;
  std::condition_variable never;
  std::unique_lock lock(mutex);
  wait_until(lock, never, when, [&] { return now() >= when; });
}

std::shared_ptr<clock> system_clock() {
  static const auto instance = std::make_shared<machine_clock>();
  return instance;
}

manual_clock::manual_clock(wall_time wall) : start_(wall) {}

clock::time_point manual_clock::now_locked() const noexcept { return held_origin + elapsed_; }

clock::time_point manual_clock::now() const {
  const detail::mutex_lock lock(mutex_);
  return now_locked();
}

clock::wall_time manual_clock::wall_now() const {
  const detail::mutex_lock lock(mutex_);
  return start_ + std::chrono::duration_cast<wall_time::duration>(elapsed_);
}

clock::alarm_id manual_clock::call_at_locked(time_point when, std::function<void()> action) {
  const auto id = next_id_++;
  alarms_.emplace(when, entry{id, std::move(action)});
  changed_.notify_all();
  return id;
}

clock::alarm_id manual_clock::call_at(time_point when, std::function<void()> action) {
  const detail::mutex_lock lock(mutex_);
  return call_at_locked(when, std::move(action));
}

void manual_clock::cancel(alarm_id id) {
  detail::mutex_lock lock(mutex_);
  std::erase_if(alarms_, [id](const auto& alarm) { return alarm.second.id == id; });
  if (runner_ == &this_thread_mark) { return; }
  changed_.wait(lock, [&]() STEPWELL_HOLDS(mutex_) { return running_ != id; });
}

bool manual_clock::wait_until(std::unique_lock<std::mutex>& lock, std::condition_variable& condition, time_point when) {
  // The alarm takes the waiter's mutex before it notifies, so it cannot notify before the wait begins.
  auto* const mutex = lock.mutex();
  auto wake = [mutex, &condition] {
    { const std::lock_guard held(*mutex); }
    condition.notify_all();
  };
  alarm_id id = 0;
  {
    // Check and set under one lock: an alarm set after its time has passed would not wake this thread.
    const detail::mutex_lock held(mutex_);
    if (now_locked() >= when) { return false; }
    id = call_at_locked(when, wake);
  }
  {
    const detail::observed_wait here;
    condition.wait(lock);
  }
  lock.unlock();  // avoids a deadlock: the alarm may wait for this mutex while `cancel` waits for the alarm
  cancel(id);
  lock.lock();
  return now() < when;
}

void manual_clock::advance(duration length) {
  assert(length >= duration::zero());
  detail::mutex_lock lock(mutex_);
  assert(runner_ != &this_thread_mark);
  changed_.wait(lock, [&]() STEPWELL_HOLDS(mutex_) { return runner_ == nullptr; });
  runner_ = &this_thread_mark;
  const auto target = elapsed_ + length;
  while (!alarms_.empty() && alarms_.begin()->first <= held_origin + target) {
    if (const auto when = alarms_.begin()->first; when > now_locked()) { elapsed_ = when - held_origin; }
    run_first_alarm(mutex_, alarms_, running_, changed_);
  }
  elapsed_ = target;
  runner_ = nullptr;
  changed_.notify_all();
}

std::size_t manual_clock::pending() const {
  const detail::mutex_lock lock(mutex_);
  return alarms_.size();
}

bool manual_clock::wait_for_pending(std::size_t count) const {
  detail::mutex_lock lock(mutex_);
  return changed_.wait_for(lock, std::chrono::seconds(10), [&]() STEPWELL_HOLDS(mutex_) { return alarms_.size() >= count; });
}

}  // namespace stepwell
