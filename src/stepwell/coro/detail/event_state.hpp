// SPDX-License-Identifier: Apache-2.0
//
// The state of an event that any thread may set and one coroutine waits for, and the registry of pending waits.
#pragma once

#include "stepwell/base/detail/locks.hpp"

#include <memory>
#include <unordered_map>
#include <utility>

namespace stepwell::coro::detail {

class event_state;

/// The registry of the pending waits of one execution context. The waits that are pending when the context is destroyed are destroyed with
/// it, like all other pending operations. Setting their events later has no effect on them.
class waiter_registry {
public:
  void enter(const std::shared_ptr<event_state>& event) {
    const stepwell::detail::mutex_lock lock(mutex_);
    events_.emplace(event.get(), event);
  }
  void leave(const event_state* event) {
    std::shared_ptr<event_state> last;  // destroyed after the lock is released
    const stepwell::detail::mutex_lock lock(mutex_);
    if (const auto found = events_.find(event); found != events_.end()) {
      last = std::move(found->second);
      events_.erase(found);
    }
  }
  inline void close();

private:
  stepwell::detail::checked_mutex mutex_;
  std::unordered_map<const event_state*, std::shared_ptr<event_state>> events_ STEPWELL_GUARDED_BY(mutex_);
};

/// One pending wait.
class waiter {
public:
  virtual ~waiter() = default;
  /// Posts the completion handler to its executor. Never calls the handler directly. `is_cancelled`: the event was not set.
  virtual void complete(bool is_cancelled) = 0;
};

/// The state of an event, shared by all copies of an `async_event`.
class event_state : public std::enable_shared_from_this<event_state> {
public:
  void set() noexcept { wake(false); }
  void cancel() noexcept { wake(true); }
  /// Destroys the pending wait without completing it.
  void detach_waiter() {
    std::unique_ptr<waiter> last;  // destroyed after the lock is released
    const stepwell::detail::mutex_lock lock(mutex_);
    last = std::move(waiter_);
  }

  /// Starts a wait, or completes it if the event is set. `registry` is that of its execution context, or null.
  /// @pre `registry` contains this event.
  void wait(std::unique_ptr<waiter> made, const std::shared_ptr<waiter_registry>& registry) {
    bool is_set = false;
    {
      const stepwell::detail::mutex_lock lock(mutex_);
      registry_ = registry;
      is_set = std::exchange(is_set_, false);
      if (is_set) {
        made->complete(false);
      } else {
        waiter_ = std::move(made);
      }
    }
    if (is_set && registry) { registry->leave(this); }
  }

private:
  void wake(bool is_cancelled) noexcept {
    const auto self = shared_from_this();  // the woken handler may release the last other reference at once
    std::shared_ptr<waiter_registry> registry;
    {
      const stepwell::detail::mutex_lock lock(mutex_);
      if (!waiter_) {
        is_set_ = is_set_ || !is_cancelled;
        return;
      }
      // Destroyed before the lock is released: the lock delays the destruction of the context until then.
      const auto woken = std::move(waiter_);
      registry = std::move(registry_);
      woken->complete(is_cancelled);
    }
    if (registry) { registry->leave(this); }
  }

  stepwell::detail::checked_mutex mutex_;
  std::unique_ptr<waiter> waiter_ STEPWELL_GUARDED_BY(mutex_);
  std::shared_ptr<waiter_registry> registry_ STEPWELL_GUARDED_BY(mutex_);
  bool is_set_ STEPWELL_GUARDED_BY(mutex_) = false;
};

inline void waiter_registry::close() {
  std::unordered_map<const event_state*, std::shared_ptr<event_state>> all;
  {
    const stepwell::detail::mutex_lock lock(mutex_);
    all.swap(events_);
  }
  for (const auto& [address, event] : all) { event->detach_waiter(); }
}

}  // namespace stepwell::coro::detail
