// SPDX-License-Identifier: Apache-2.0
//
// Offloaded calls: a function runs on another thread while a coroutine waits for its end.
#pragma once

#include "stepwell/base/clock.hpp"
#include "stepwell/base/detail/locks.hpp"
#include "stepwell/base/error.hpp"
#include "stepwell/coro/detail/async_event.hpp"

#include <condition_variable>
#include <exception>
#include <memory>
#include <utility>

namespace stepwell::coro {

/// The state of one offloaded call, shared by the waiting coroutine and the thread that runs the call.
class offloaded_call {
public:
  explicit offloaded_call(void (*call)(void*), void* on) noexcept : call_(call), on_(on) {}

  /// Runs the function on the calling thread. Stores its exception. Does nothing if the call was cancelled.
  void run() noexcept {
    if (!begin()) { return; }
    std::exception_ptr failure;
    try {
      call_(on_);
    } catch (...) { failure = std::current_exception(); }
    finish(std::move(failure));
  }
  /// Ends the call with an `unavailable_error`, unless the function has begun. Used if the executor of the call has ended.
  void give_up() noexcept {
    if (begin()) { finish(std::make_exception_ptr(unavailable_error("could not run the offloaded call: its executor has ended"))); }
  }

  /// Cancels the call if it has not begun, and wakes the waiting coroutine. Does nothing if the function has begun.
  void call_off() noexcept {
    {
      const stepwell::detail::mutex_lock lock(mutex_);
      if (stage_ != stage::waits) { return; }
      stage_ = stage::called_off;
    }
    event_.set();
  }

  /// Cancels the call if it has not begun, or else blocks until the function has returned. Then wakes the waiting coroutine.
  /// The function does not run after `cancel_or_wait` has returned.
  void cancel_or_wait() noexcept {
    {
      stepwell::detail::mutex_lock lock(mutex_);
      if (stage_ == stage::waits) { stage_ = stage::called_off; }
      system_clock()->wait_until(lock, changed_, clock::time_point::max(),
                                 [this]() STEPWELL_HOLDS(mutex_) { return stage_ != stage::runs; });
    }
    event_.set();
  }

  /// Returns the event that is set when the call has ended or was cancelled.
  [[nodiscard]] const async_event& done() const noexcept { return event_; }
  /// Returns true if the function has returned, or if `give_up` has ended the call.
  [[nodiscard]] bool has_run() noexcept {
    const stepwell::detail::mutex_lock lock(mutex_);
    return stage_ == stage::has_run;
  }
  /// Throws the exception of the function, if it threw one. @pre The call has ended.
  void rethrow() {
    const stepwell::detail::mutex_lock lock(mutex_);
    if (failure_) { std::rethrow_exception(std::exchange(failure_, nullptr)); }
  }

private:
  enum class stage { waits, runs, has_run, called_off };

  bool begin() noexcept {
    const stepwell::detail::mutex_lock lock(mutex_);
    return stage_ == stage::waits && (stage_ = stage::runs, true);
  }
  void finish(std::exception_ptr failure) noexcept {
    {
      const stepwell::detail::mutex_lock lock(mutex_);
      failure_ = std::move(failure);
      stage_ = stage::has_run;
      changed_.notify_all();
    }
    event_.set();
  }

  void (*const call_)(void*);
  void* const on_;
  stepwell::detail::checked_mutex mutex_;
  std::condition_variable changed_;
  stage stage_ STEPWELL_GUARDED_BY(mutex_) = stage::waits;
  std::exception_ptr failure_ STEPWELL_GUARDED_BY(mutex_);
  async_event event_;
};

/// The function object for the other thread. It runs the offloaded call. If it is destroyed without being called, it calls `give_up`.
class offloaded_call_ticket {
public:
  explicit offloaded_call_ticket(std::shared_ptr<offloaded_call> given) noexcept : offloaded_(std::move(given)) {}
  offloaded_call_ticket(offloaded_call_ticket&&) = default;
  offloaded_call_ticket& operator=(offloaded_call_ticket&&) = delete;
  ~offloaded_call_ticket() {
    if (offloaded_) { offloaded_->give_up(); }
  }

  void operator()() noexcept { std::exchange(offloaded_, nullptr)->run(); }

private:
  std::shared_ptr<offloaded_call> offloaded_;
};

/// Creates an offloaded call of `function`. @lifetime `function` must live until the call has ended or was cancelled.
template<class Function>
[[nodiscard]] std::shared_ptr<offloaded_call> make_offloaded_call(Function& function) {
  return std::make_shared<offloaded_call>([](void* on) { (*static_cast<Function*>(on))(); }, std::addressof(function));
}

}  // namespace stepwell::coro
