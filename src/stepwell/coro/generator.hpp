// SPDX-License-Identifier: Apache-2.0
//
// A coroutine that yields values one by one, as an input range, like `std::generator` of C++23. The differences are: iterators are
// copyable, as range-v3 requires; the coroutine is resumed as late as possible; `begin()` may be called several times; there is no
// allocator and no `elements_of`.
#pragma once

#include <coroutine>
#include <cstddef>
#include <exception>
#include <iterator>
#include <memory>
#include <type_traits>
#include <utility>

namespace stepwell::coro {

/// A lazy sequence of values that a coroutine yields with `co_yield`. A `generator<T>` yields `T&&`. A `generator<const T&>` yields a
/// reference to the operand of `co_yield`, and copies nothing.
///
/// * Every generator works with `std::views`. An lvalue generator also works with range-v3; for an rvalue see coro/range_v3.hpp.
/// * The coroutine runs when an iterator is compared with the end (`==`) or dereferenced (`*`). An increment runs the coroutine only if the
///   iterator was neither compared nor dereferenced since the previous increment. `take(n)` therefore runs the coroutine to its n-th
///   `co_yield` at most. `filter(p) | take(n)` runs the coroutine further: after the n-th match, the filter searches for another match.
/// * `begin()` does not restart the sequence. All iterators of a generator share one position.
/// * If the coroutine throws, the operator that resumed it (such as `==` or `*`) rethrows the exception, and the sequence has ended.
/// * The coroutine cannot use `co_await`. With g++ 12, do not create an aggregate inside a `co_yield` expression, because g++ 12 has a bug
///   that destroys this aggregate twice. Store the aggregate in a named variable first.
/// @lifetime Iterators refer to the coroutine frame. They stay valid when the generator is moved, but not when it is destroyed.
/// @threads  One thread at a time.
/// @cost     One allocation for the frame, and none per element. A `generator<T>` copies yielded lvalues.
template<class T>
class [[nodiscard]] generator {
public:
  using value_type = std::remove_cvref_t<T>;
  using reference = std::conditional_t<std::is_reference_v<T>, T, T&&>;

  class promise_type;
  class iterator;

  generator(generator&& other) noexcept : frame_(std::exchange(other.frame_, nullptr)) {}
  generator& operator=(generator&& other) noexcept {
    std::swap(frame_, other.frame_);
    return *this;
  }
  ~generator() {
    if (frame_) { frame_.destroy(); }
  }

  /// Returns an iterator at the current position. @pre The generator was not moved from.
  [[nodiscard]] iterator begin() const noexcept { return iterator(frame_); }
  [[nodiscard]] std::default_sentinel_t end() const noexcept { return {}; }

private:
  using handle = std::coroutine_handle<promise_type>;
  explicit generator(handle frame) noexcept : frame_(frame) {}

  handle frame_;
};

template<class T>
class generator<T>::promise_type {
public:
  generator get_return_object() noexcept { return generator(handle::from_promise(*this)); }
  std::suspend_always initial_suspend() const noexcept { return {}; }
  std::suspend_always final_suspend() const noexcept { return {}; }
  void return_void() const noexcept {}
  void unhandled_exception() noexcept { failure_ = std::current_exception(); }
  template<class U>
  void await_transform(U&&) = delete;  // rejects `co_await` in a generator

  std::suspend_always yield_value(reference value) noexcept {
    value_ = std::addressof(value);
    return {};
  }
  /// Yields a copy of an lvalue. The code that reads the element may move from the copy.
  auto yield_value(const value_type& value)
    requires(!std::is_reference_v<T> && std::is_copy_constructible_v<value_type>)
  {
    return copied(value, value_);
  }

private:
  friend class iterator;
  using pointer = std::add_pointer_t<reference>;

  class copied : public std::suspend_always {
  public:
    copied(const value_type& value, pointer& place) : value_(value), place_(place) {}
    void await_suspend(std::coroutine_handle<>) noexcept { place_ = std::addressof(value_); }

  private:
    value_type value_;
    pointer& place_;
  };

  /// Runs the coroutine to its next element; in the first call, to its first element. Does nothing if no iterator was incremented since
  /// the last element, or if the coroutine has finished.
  /// @errors Any exception of the coroutine.
  void catch_up() {
    const auto frame = handle::from_promise(*this);
    if (value_ != nullptr || frame.done()) { return; }
    frame.resume();
    if (failure_) [[unlikely]] { std::rethrow_exception(std::exchange(failure_, nullptr)); }
  }

  pointer value_ = nullptr;  // the current element; null if the next element is due, and at the end
  std::exception_ptr failure_;
};

/// A single-pass iterator. All copies share one position, and an increment of one copy moves all of them.
template<class T>
class generator<T>::iterator {
public:
  using iterator_concept = std::input_iterator_tag;
  using iterator_category = std::input_iterator_tag;
  using value_type = generator::value_type;
  using reference = generator::reference;
  using difference_type = std::ptrdiff_t;
  using pointer = void;

  iterator() = default;

  reference operator*() const {
    frame_.promise().catch_up();
    return static_cast<reference>(*frame_.promise().value_);
  }
  iterator& operator++() {
    frame_.promise().catch_up();  // an element that was not read is skipped
    frame_.promise().value_ = nullptr;
    return *this;
  }
  void operator++(int) { ++*this; }
  friend bool operator==(const iterator& position, std::default_sentinel_t) { return position.is_at_end(); }

private:
  friend class generator;
  explicit iterator(handle frame) noexcept : frame_(frame) {}

  bool is_at_end() const {
    frame_.promise().catch_up();
    return frame_.promise().value_ == nullptr;
  }

  handle frame_;
};

}  // namespace stepwell::coro

namespace stepwell {
using coro::generator;
}  // namespace stepwell
