// SPDX-License-Identifier: Apache-2.0
//
// The bridge from blocking code into coroutines.
#pragma once

#include "stepwell/base/clock.hpp"
#include "stepwell/coro/detail/task.hpp"

#include <condition_variable>
#include <coroutine>
#include <exception>
#include <mutex>
#include <type_traits>
#include <utility>
#include <variant>

namespace stepwell::coro {

namespace detail {

/// Set once, by any thread; waited for through a clock.
class completion {
public:
  void set() noexcept {
    const std::lock_guard lock(mutex_);
    is_set_ = true;
    changed_.notify_all();  // under the lock: the one that waits destroys this as soon as it may
  }
  void wait(clock& time) {
    std::unique_lock lock(mutex_);
    time.wait_until(lock, changed_, clock::time_point::max(), [this] { return is_set_; });
  }

private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_set_ = false;
};

/// The outermost coroutine: awaits one task and says so when it has ended. It never leaves with an exception, as the
/// task keeps its own.
class root {
public:
  struct promise_type {
    root get_return_object() noexcept { return root(handle::from_promise(*this)); }
    std::suspend_always initial_suspend() const noexcept { return {}; }
    auto final_suspend() const noexcept { return announce(); }
    void return_void() const noexcept {}
    [[noreturn]] void unhandled_exception() const noexcept { std::terminate(); }
    completion* done = nullptr;
  };
  using handle = std::coroutine_handle<promise_type>;

  root(root&& other) noexcept : frame_(std::exchange(other.frame_, nullptr)) {}
  ~root() {
    if (frame_) { frame_.destroy(); }
  }

  void run(completion& done) {
    frame_.promise().done = &done;
    frame_.resume();
  }

private:
  explicit root(handle frame) noexcept : frame_(frame) {}

  struct announce {
    [[nodiscard]] bool await_ready() const noexcept { return false; }
    void await_suspend(handle finished) const noexcept { finished.promise().done->set(); }
    void await_resume() const noexcept {}
  };

  handle frame_;
};

}  // namespace detail

/// Runs `work` on this thread as far as it goes without waiting, then blocks until it has ended, wherever that is. Its
/// value; its exception is thrown.
/// @pre Not on a thread the task needs in order to end (a thread of the pool it hops to).
template<class T>
T sync_wait(task<T> work, clock& time = *system_clock()) {
  using outcome_of = std::conditional_t<std::is_void_v<T>, std::monostate, T>;
  std::variant<std::monostate, outcome_of, std::exception_ptr> outcome;
  // Parameters, not captures: a coroutine lambda's captures die before it does.
  auto outermost = [](task<T>& inner, auto& into) -> detail::root {
    try {
      if constexpr (std::is_void_v<T>) {
        co_await std::move(inner);
        into.template emplace<1>();
      } else {
        into.template emplace<1>(co_await std::move(inner));
      }
    } catch (...) { into.template emplace<2>(std::current_exception()); }
  }(work, outcome);
  detail::completion done;
  outermost.run(done);
  done.wait(time);
  if (outcome.index() == 2) { std::rethrow_exception(std::get<2>(outcome)); }
  if constexpr (!std::is_void_v<T>) { return std::move(std::get<1>(outcome)); }
}

}  // namespace stepwell::coro
