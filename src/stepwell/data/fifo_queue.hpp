// SPDX-License-Identifier: Apache-2.0
//
// A bounded first-in, first-out queue of batches.
#pragma once

#include "stepwell/data/detail/bounded_queue.hpp"

#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <utility>

namespace stepwell::data {

/// Options of a `fifo_queue`.
struct fifo_queue_options {
  std::size_t capacity = 32;
  std::string name = "fifo_queue";
  std::shared_ptr<clock> time = system_clock();  ///< Clock for waiting.
};

namespace detail {

template<class T>
class fifo_store {
public:
  void push(T&& value) { elements_.push_back(std::move(value)); }
  T pop() {
    T first = std::move(elements_.front());
    elements_.pop_front();
    return first;
  }
  [[nodiscard]] std::size_t size() const noexcept { return elements_.size(); }
  [[nodiscard]] bool can_give(bool /*is_closed*/) const noexcept { return !elements_.empty(); }

private:
  std::deque<T> elements_;
};

}  // namespace detail

/// A `bounded_queue` that returns its elements in the order in which they were added.
///
///     stepwell::data::fifo_queue<batch> queue({.capacity = 16});
template<std::move_constructible T>
class fifo_queue : public bounded_queue<T, detail::fifo_store<T>> {
public:
  /// Creates an empty queue.
  /// @errors `invalid_argument_error` if the capacity is 0.
  explicit fifo_queue(fifo_queue_options options = {})
      : bounded_queue<T, detail::fifo_store<T>>({options.capacity, std::move(options.name), std::move(options.time)}, {}) {}
};

}  // namespace stepwell::data
