// SPDX-License-Identifier: Apache-2.0
//
// What the threads of a queue runner do again and again: get one element somewhere, and put it into a queue.
#pragma once

#include "stepwell/base/error.hpp"
#include "stepwell/data/range_source.hpp"
#include "stepwell/data/source.hpp"

#include <functional>
#include <memory>
#include <mutex>
#include <ranges>
#include <stop_token>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace stepwell {

/// Puts one element, or a few, into a queue each time it is run; throws `out_of_range_error` at the end of its input.
/// It may watch the token, which tells of a stop of its session; it is asked between two runs in any case.
struct enqueue_op {
  std::string name;
  std::function<void(std::stop_token)> run;
};

namespace detail {

/// Source: an lvalue reference, or the type that is owned. May be run by several threads at once: each element goes once.
/// Moves: what `peek()` points to is the source's own, made on the spot, and may be moved from.
template<class Queue, class Source, bool Moves>
class feeder {
public:
  using value_type = typename Queue::value_type;

  feeder(Queue& queue, Source&& source, std::string name) : queue_(queue), source_(std::forward<Source>(source)), name_(std::move(name)) {}

  void feed_one() {
    auto value = next();
    try {
      queue_.enqueue(std::move(value));
    } catch (...) {
      const std::lock_guard lock(mutex_);
      left_over_.push_back(std::move(value));  // a refused element is as it was
      throw;
    }
  }

private:
  value_type next() {
    const std::lock_guard lock(mutex_);
    if (!left_over_.empty()) {
      value_type value = std::move(left_over_.back());
      left_over_.pop_back();
      return value;
    }
    auto* const present = source_.peek();
    if (present == nullptr) { throw out_of_range_error("\"" + name_ + "\" is at the end of its input"); }
    value_type value = take(*present);
    source_.advance();
    return value;
  }

  template<class Element>
  static value_type take(Element& element) {
    if constexpr (Moves) {
      return value_type(std::move(element));
    } else {
      return value_type(element);
    }
  }

  Queue& queue_;
  Source source_;
  std::string name_;
  std::mutex mutex_;
  std::vector<value_type> left_over_;
};

template<bool Moves, class Queue, class Source>
enqueue_op feed(Queue& queue, Source&& source, std::string name) {
  auto feeding = std::make_shared<feeder<Queue, Source, Moves>>(queue, std::forward<Source>(source), name);
  return {std::move(name), [feeding = std::move(feeding)](const std::stop_token&) { feeding->feed_one(); }};
}

}  // namespace detail

/// Puts the elements of `source`, a source of batches or any input range, into `queue`, once through. Several threads may
/// run copies of it: each element is put in by one of them. One whose enqueue is refused is the next again.
/// Elements are copied, unless the range makes them on the spot. A source that is an lvalue is referred to, an rvalue is owned.
/// @lifetime The queue, and an lvalue source, must outlive the threads that run it.
template<class Queue, class Source>
  requires data::batch_source<Source> || std::ranges::input_range<Source>
[[nodiscard]] enqueue_op enqueue_from(Queue& queue, Source&& source, std::string name = {}) {
  if (name.empty()) { name = std::string(std::string_view(queue.name())) + "_enqueue"; }
  if constexpr (data::batch_source<Source>) {
    return detail::feed<false, Queue, Source>(queue, std::forward<Source>(source), std::move(name));
  } else {
    using under = data::range_source<Source>;
    constexpr bool moves = !std::is_reference_v<std::ranges::range_reference_t<Source>>;
    return detail::feed<moves, Queue, under>(queue, under(std::forward<Source>(source)), std::move(name));
  }
}

}  // namespace stepwell
