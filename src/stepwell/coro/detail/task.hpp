// SPDX-License-Identifier: Apache-2.0
//
// A coroutine that computes one value and may wait for others on the way.
#pragma once

#include <atomic>
#include <cassert>
#include <coroutine>
#include <exception>
#include <type_traits>
#include <utility>
#include <variant>

namespace stepwell::coro {

template<class T = void>
class task;

namespace detail {

/// What all promises of tasks share: who goes on when this one is done. A task that ends before its awaiter has
/// suspended lets the awaiter run on instead of resuming it, so a loop of awaits needs no deeper stack than one,
/// whatever the compiler makes of a symmetric transfer (g++ makes a call of it below -O2 and under sanitizers).
class task_promise_base {
public:
  std::suspend_always initial_suspend() const noexcept { return {}; }
  auto final_suspend() const noexcept { return hand_over(); }
  void set_continuation(std::coroutine_handle<> next) noexcept { continuation_ = next; }

  /// Called once by the awaiter about to suspend and once by the task that ends; true for the later of the two. The
  /// earlier must not touch the frame any more.
  bool is_second() noexcept { return met_.exchange(true, std::memory_order_acq_rel); }

private:
  struct hand_over {
    [[nodiscard]] bool await_ready() const noexcept { return false; }
    template<class Promise>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> finished) const noexcept {
      auto& promise = finished.promise();
      return promise.is_second() ? promise.continuation_ : std::noop_coroutine();
    }
    void await_resume() const noexcept {}
  };

  std::coroutine_handle<> continuation_;
  std::atomic<bool> met_ = false;
};

template<class T>
class task_promise final : public task_promise_base {
public:
  task<T> get_return_object() noexcept;
  void unhandled_exception() noexcept { outcome_.template emplace<2>(std::current_exception()); }
  template<class U>
    requires std::is_constructible_v<T, U&&>
  void return_value(U&& value) {
    outcome_.template emplace<1>(std::forward<U>(value));
  }

  T take() {
    if (outcome_.index() == 2) { std::rethrow_exception(std::get<2>(outcome_)); }
    return std::move(std::get<1>(outcome_));
  }

private:
  std::variant<std::monostate, T, std::exception_ptr> outcome_;
};

template<>
class task_promise<void> final : public task_promise_base {
public:
  task<void> get_return_object() noexcept;
  void unhandled_exception() noexcept { failure_ = std::current_exception(); }
  void return_void() const noexcept {}
  void take() const {
    if (failure_) { std::rethrow_exception(failure_); }
  }

private:
  std::exception_ptr failure_;
};

}  // namespace detail

/// A lazy computation of one `T` (an object or void): it starts when it is awaited, on the thread that awaits, and
/// hands its value, or its exception, to the one that awaits. Awaiting in a loop does not grow the stack.
///
/// Rules g++ 12 imposes on the body of any coroutine: no `co_await` in the condition of `if`, `while`, `for` or
/// `switch`; no aggregate built inside an awaited expression. Give either a name first.
/// @lifetime A task that is destroyed before its end ends there; nobody may hold its handle then. Parameters taken by
///           reference must outlive it.
/// @threads  May move between threads at each `co_await`; runs on one at a time.
template<class T>
class [[nodiscard]] task {
  static_assert(!std::is_reference_v<T>, "stepwell: a task gives an object; wrap a reference in std::ref or a pointer");

public:
  using promise_type = detail::task_promise<T>;

  task(task&& other) noexcept : frame_(std::exchange(other.frame_, nullptr)) {}
  task& operator=(task&& other) noexcept {
    std::swap(frame_, other.frame_);
    return *this;
  }
  ~task() {
    if (frame_) { frame_.destroy(); }
  }

  /// Starts it; awaiting gives its value once. @pre Not moved from, not awaited before.
  auto operator co_await() && noexcept {
    assert(frame_ && !frame_.done());
    return awaiter(frame_);
  }

private:
  friend promise_type;
  using handle = std::coroutine_handle<promise_type>;
  explicit task(handle frame) noexcept : frame_(frame) {}

  class awaiter {
  public:
    explicit awaiter(handle frame) noexcept : frame_(frame) {}
    [[nodiscard]] bool await_ready() const noexcept { return false; }
    /// False, that is: run on at once, if the task has ended already.
    bool await_suspend(std::coroutine_handle<> waiting) const {
      auto& promise = frame_.promise();
      promise.set_continuation(waiting);
      frame_.resume();
      return !promise.is_second();
    }
    T await_resume() const { return frame_.promise().take(); }

  private:
    handle frame_;
  };

  handle frame_;
};

template<class T>
task<T> detail::task_promise<T>::get_return_object() noexcept {
  return task<T>(std::coroutine_handle<task_promise>::from_promise(*this));
}
inline task<void> detail::task_promise<void>::get_return_object() noexcept {
  return task<void>(std::coroutine_handle<task_promise>::from_promise(*this));
}

}  // namespace stepwell::coro

namespace stepwell {
using coro::task;
}  // namespace stepwell
