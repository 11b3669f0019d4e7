// SPDX-License-Identifier: Apache-2.0
//
// A function that runs on another thread while a coroutine waits for it.
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

/// The state of one errand, shared by the coroutine that waits and the thread that runs it.
class errand {
public:
  explicit errand(void (*call)(void*), void* on) noexcept : call_(call), on_(on) {}

  /// On the other thread. Does nothing if it was called off.
  void run() noexcept {
    if (!begin()) { return; }
    std::exception_ptr failure;
    try {
      call_(on_);
    } catch (...) { failure = std::current_exception(); }
    finish(std::move(failure));
  }
  /// There is no other thread any more that would run it.
  void give_up() noexcept {
    if (begin()) { finish(std::make_exception_ptr(unavailable_error("the executor that was to do this has ended"))); }
  }

  /// Not wanted any more: if it has not begun, it will not, and whoever waits goes on. One that runs is left alone.
  void call_off() noexcept {
    {
      const std::lock_guard lock(mutex_);
      if (stage_ != stage::waits) { return; }
      stage_ = stage::called_off;
    }
    bell_.ring();
  }

  /// Sees to it that it does not run from here on: calls it off, or waits until it has run. Whoever waits goes on.
  void settle() noexcept {
    {
      std::unique_lock lock(mutex_);
      if (stage_ == stage::waits) { stage_ = stage::called_off; }
      system_clock()->wait_until(lock, changed_, clock::time_point::max(), [this] { return stage_ != stage::runs; });
    }
    bell_.ring();
  }

  /// Rung when it has run.
  [[nodiscard]] const bell& done() const noexcept { return bell_; }
  [[nodiscard]] bool has_run() noexcept {
    const std::lock_guard lock(mutex_);
    return stage_ == stage::has_run;
  }
  /// @errors What the function threw. @pre Done.
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

/// What is given to the other thread: runs the errand, and says so where it is destroyed unrun.
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

/// Waits for an errand wherever the frame that holds this is destroyed.
class errand_guard {
public:
  explicit errand_guard(std::shared_ptr<errand> given) noexcept : errand_(std::move(given)) {}
  errand_guard(const errand_guard&) = delete;
  errand_guard& operator=(const errand_guard&) = delete;
  ~errand_guard() { errand_->settle(); }

private:
  std::shared_ptr<errand> errand_;
};

/// An errand that calls `function`, which must live until it is done or settled.
template<class Function>
[[nodiscard]] std::shared_ptr<errand> make_errand(Function& function) {
  return std::make_shared<errand>([](void* on) { (*static_cast<Function*>(on))(); }, std::addressof(function));
}

}  // namespace stepwell::coro
