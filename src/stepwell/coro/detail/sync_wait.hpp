// SPDX-License-Identifier: Apache-2.0
//
// `sync_wait`: runs a task from blocking code.
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

/// A flag that any thread sets once, and that a thread waits for through a clock.
class completion {
public:
  void set() noexcept {
    const std::lock_guard lock(mutex_);
    is_set_ = true;
    changed_.notify_all();  // under the lock, because the waiting thread destroys this object as soon as it can lock the mutex
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

/// The outermost coroutine. It awaits one task and sets a `completion` when the task has ended. It never ends by an exception, because its
/// body stores the exception of the task.
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

/// Runs `work` on this thread until it first suspends. Then blocks until the task has ended, on any thread. Returns the value of the task,
/// or throws its exception.
/// @pre The task does not need the calling thread in order to end. Otherwise the call deadlocks: for example, on a thread of a pool that
///      the task moves to.
template<class T>
T sync_wait(task<T> work, clock& time = *system_clock()) {
  using outcome_of = std::conditional_t<std::is_void_v<T>, std::monostate, T>;
  std::variant<std::monostate, outcome_of, std::exception_ptr> outcome;
  // Parameters instead of captures: the captures of a coroutine lambda are destroyed before the coroutine ends.
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
