// SPDX-License-Identifier: Apache-2.0
//
// A bounded queue that returns its elements in random order.
#pragma once

#include "stepwell/base/random.hpp"
#include "stepwell/data/detail/bounded_queue.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace stepwell::data {

/// Options of a `shuffle_queue`.
struct shuffle_queue_options {
  std::size_t capacity = 1024;
  std::size_t min_after_dequeue = 0;  ///< Number of elements that stay in the queue for mixing until it is closed.
  std::uint64_t seed = 0;
  std::string name = "shuffle_queue";
  std::shared_ptr<clock> time = system_clock();  ///< Clock for waiting.
};

namespace detail {

template<class T>
class shuffle_store {
public:
  shuffle_store(std::size_t min_after_dequeue, std::uint64_t seed) : min_(min_after_dequeue), random_(seed) {}

  void push(T&& value) { elements_.push_back(std::move(value)); }
  T pop() {
    using std::swap;
    swap(elements_[static_cast<std::size_t>(random_() % elements_.size())], elements_.back());
    T drawn = std::move(elements_.back());
    elements_.pop_back();
    return drawn;
  }
  [[nodiscard]] std::size_t size() const noexcept { return elements_.size(); }
  [[nodiscard]] bool can_give(bool is_closed) const noexcept { return elements_.size() > (is_closed ? 0 : min_); }

private:
  std::vector<T> elements_;
  std::size_t min_;
  random_stream random_;
};

}  // namespace detail

/// A `bounded_queue` that returns a random element; each one is equally likely. The same calls in the same order with the same seed
/// return the same elements.
///
///     stepwell::data::shuffle_queue<example> queue({.capacity = 10'000, .min_after_dequeue = 5'000, .seed = 1});
template<class T>
  requires std::movable<T>
class shuffle_queue : public bounded_queue<T, detail::shuffle_store<T>> {
public:
  /// Creates an empty queue.
  /// @errors `invalid_argument_error` unless the capacity is greater than `min_after_dequeue`, because no element could be taken out.
  explicit shuffle_queue(shuffle_queue_options options = {})
      : bounded_queue<T, detail::shuffle_store<T>>({options.capacity, options.name, std::move(options.time)},
                                                   {options.min_after_dequeue, options.seed}) {
    if (options.capacity <= options.min_after_dequeue) {
      throw invalid_argument_error("the queue \"" + options.name + "\" has min_after_dequeue " + std::to_string(options.min_after_dequeue) +
                                   " and capacity " + std::to_string(options.capacity) +
                                   ": no element could be dequeued; increase the capacity");
    }
  }
};

}  // namespace stepwell::data
