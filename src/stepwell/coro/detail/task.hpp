// SPDX-License-Identifier: Apache-2.0
//
// A coroutine that computes one value and may await other operations.
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

/// The common part of all promises of tasks: the coroutine to resume when the task ends. If a task ends before its awaiter has suspended,
/// the awaiter continues and is not resumed. A loop of awaits therefore needs the stack of one await, also if the compiler implements
/// symmetric transfer as a call, as g++ does below -O2 and under sanitizers.
class task_promise_base {
public:
  std::suspend_always initial_suspend() const noexcept { return {}; }
  auto final_suspend() const noexcept { return hand_over(); }
  void set_continuation(std::coroutine_handle<> next) noexcept { continuation_ = next; }

  /// Returns true for the second of two calls. The awaiter calls it once before it suspends, and the task calls it once at its end. After
  /// the first call its caller must not access the frame.
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

/// A lazy computation of one `T` (an object or void). It starts when it is awaited, on the thread of its awaiter. The awaiter gets its
/// value or its exception. Awaiting in a loop does not grow the stack.
///
/// Because of defects of g++ 12, the body of a coroutine must follow two rules. It contains no `co_await` in the condition of `if`,
/// `while`, `for` or `switch`. It builds no aggregate inside an awaited expression. Use a named variable in both cases.
/// @lifetime Destroying a task before its end destroys its coroutine. No other code may then hold a handle of the coroutine. Parameters
///           taken by reference must outlive the task.
/// @threads  May move to another thread at each `co_await`. Runs on one thread at a time.
template<class T>
class [[nodiscard]] task {
  static_assert(!std::is_reference_v<T>, "stepwell: a task cannot return a reference; return a std::reference_wrapper or a pointer");

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

  /// Starts the task and returns its value. @pre The task was neither moved from nor awaited before.
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
    /// Runs the task. Returns false if the task has ended already; the awaiter then continues at once.
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
