// SPDX-License-Identifier: Apache-2.0
//
// Offloaded calls: a function runs on another thread while a coroutine waits for its end.
#pragma once

#include "stepwell/base/clock.hpp"
#include "stepwell/base/error.hpp"
#include "stepwell/coro/detail/bell.hpp"

#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <utility>

namespace stepwell::coro {

/// The state of one offloaded call, shared by the waiting coroutine and the thread that runs the call.
class errand {
public:
  explicit errand(void (*call)(void*), void* on) noexcept : call_(call), on_(on) {}

  /// Runs the function on the calling thread. Stores its exception. Does nothing if the call was cancelled.
  void run() noexcept {
    if (!begin()) { return; }
    std::exception_ptr failure;
    try {
      call_(on_);
    } catch (...) { failure = std::current_exception(); }
    finish(std::move(failure));
  }
  /// Ends a call that has not begun with an `unavailable_error`, because its executor has ended.
  void give_up() noexcept {
    if (begin()) { finish(std::make_exception_ptr(unavailable_error("could not run the offloaded call: its executor has ended"))); }
  }

  /// Cancels the call if it has not begun, and wakes the waiting coroutine. Does nothing if the function has begun.
  void call_off() noexcept {
    {
      const std::lock_guard lock(mutex_);
      if (stage_ != stage::waits) { return; }
      stage_ = stage::called_off;
    }
    bell_.ring();
  }

  /// Cancels the call if it has not begun, or else blocks until the function has returned. Then wakes the waiting coroutine.
  /// The function does not run after the return.
  void settle() noexcept {
    {
      std::unique_lock lock(mutex_);
      if (stage_ == stage::waits) { stage_ = stage::called_off; }
      system_clock()->wait_until(lock, changed_, clock::time_point::max(), [this] { return stage_ != stage::runs; });
    }
    bell_.ring();
  }

  /// Returns the event that is set when the call has ended or was cancelled.
  [[nodiscard]] const bell& done() const noexcept { return bell_; }
  /// Returns true if the function has returned, or if `give_up` has ended the call.
  [[nodiscard]] bool has_run() noexcept {
    const std::lock_guard lock(mutex_);
    return stage_ == stage::has_run;
  }
  /// Throws the exception of the function, if it threw one. @pre The call has ended.
  void rethrow() {
    const std::lock_guard lock(mutex_);
    if (failure_) { std::rethrow_exception(std::exchange(failure_, nullptr)); }
  }

private:
  enum class stage { waits, runs, has_run, called_off };

  bool begin() noexcept {
    const std::lock_guard lock(mutex_);
    return stage_ == stage::waits && (stage_ = stage::runs, true);
  }
  void finish(std::exception_ptr failure) noexcept {
    {
      const std::lock_guard lock(mutex_);
      failure_ = std::move(failure);
      stage_ = stage::has_run;
      changed_.notify_all();
    }
    bell_.ring();
  }

  void (*const call_)(void*);
  void* const on_;
  std::mutex mutex_;
  std::condition_variable changed_;
  stage stage_ = stage::waits;
  std::exception_ptr failure_;
  bell bell_;
};

/// The function object for the other thread. It runs the offloaded call. If it is destroyed without being called, it calls `give_up`.
class errand_ticket {
public:
  explicit errand_ticket(std::shared_ptr<errand> given) noexcept : errand_(std::move(given)) {}
  errand_ticket(errand_ticket&&) = default;
  errand_ticket& operator=(errand_ticket&&) = delete;
  ~errand_ticket() {
    if (errand_) { errand_->give_up(); }
  }

  void operator()() noexcept { std::exchange(errand_, nullptr)->run(); }

private:
  std::shared_ptr<errand> errand_;
};

/// A scope guard that cancels or awaits an offloaded call, also when the coroutine frame that holds the guard is destroyed early.
class errand_guard {
public:
  explicit errand_guard(std::shared_ptr<errand> given) noexcept : errand_(std::move(given)) {}
  errand_guard(const errand_guard&) = delete;
  errand_guard& operator=(const errand_guard&) = delete;
  ~errand_guard() { errand_->settle(); }

private:
  std::shared_ptr<errand> errand_;
};

/// Creates an offloaded call of `function`. @lifetime `function` must live until the call has ended or was cancelled.
template<class Function>
[[nodiscard]] std::shared_ptr<errand> make_errand(Function& function) {
  return std::make_shared<errand>([](void* on) { (*static_cast<Function*>(on))(); }, std::addressof(function));
}

}  // namespace stepwell::coro
