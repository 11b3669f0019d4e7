// SPDX-License-Identifier: Apache-2.0
//
// A coroutine that yields values one by one, as an input range: what `std::generator` is in C++23, with iterators
// that may be copied (range-v3 asks for that) and that run no further than they are looked at.
#pragma once

#include <coroutine>
#include <cstddef>
#include <exception>
#include <iterator>
#include <memory>
#include <type_traits>
#include <utility>

namespace stepwell::coro {

/// A lazy sequence made by a coroutine with `co_yield`. `generator<T>` yields `T&&`, `generator<const T&>` refers to
/// what is yielded and copies nothing.
///
/// * Rvalues pipe through `std::views`, lvalues through range-v3 too; for rvalues there see coro/range_v3.hpp.
/// * The coroutine runs only when an element is looked at (`==` or `*`), so `take(n)` runs it to its n-th `co_yield`
///   and no further. `filter` behind a `take` may still look for one element more.
/// * `begin()` does not start anew: all iterators stand at the same place.
/// * An exception of the coroutine comes out of `==` or `*`; the sequence has then ended.
/// * `co_await` is not possible inside. g++ 12 frees an aggregate made inside `co_yield` twice: name it first.
/// @lifetime Iterators refer to the generator's frame: they survive a move of the generator, not its end.
/// @threads  One at a time.
/// @cost     One allocation for the frame, none per element (a yielded lvalue of a `generator<T>` is copied).
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

  /// @pre Not moved from.
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
  void await_transform(U&&) = delete;  // a generator yields; it cannot wait

  std::suspend_always yield_value(reference value) noexcept {
    value_ = std::addressof(value);
    return {};
  }
  /// Yields a copy of an lvalue, which the reader may move away.
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

  /// Runs the coroutine to its next element if the last one has been left behind. A finished frame is never resumed.
  void catch_up() {
    const auto frame = handle::from_promise(*this);
    if (!is_due_ || frame.done()) { return; }
    is_due_ = false;
    frame.resume();
    if (failure_) [[unlikely]] { std::rethrow_exception(std::exchange(failure_, nullptr)); }
  }

  bool is_due_ = true;
  pointer value_ = nullptr;
  std::exception_ptr failure_;
};

/// Single-pass: copies stand at the same place and move together.
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
    frame_.promise().catch_up();  // twice forward without a look between skips one
    frame_.promise().is_due_ = true;
    return *this;
  }
  void operator++(int) { ++*this; }
  friend bool operator==(const iterator& position, std::default_sentinel_t) { return position.is_at_end(); }

private:
  friend class generator;
  explicit iterator(handle frame) noexcept : frame_(frame) {}

  bool is_at_end() const {
    frame_.promise().catch_up();
    return frame_.done();
  }

  handle frame_;
};

}  // namespace stepwell::coro

namespace stepwell {
using coro::generator;
}  // namespace stepwell
