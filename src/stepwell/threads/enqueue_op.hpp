// SPDX-License-Identifier: Apache-2.0
//
// The operation that the threads of a queue runner repeat: get one element from an input and put it into a queue.
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

/// An operation that puts one or a few elements into a queue at each call of `run`. It throws `out_of_range_error` at the end of
/// its input. The token reports a stop of the session. `run` may use it; the queue runner checks it between two calls.
struct enqueue_op {
  std::string name;
  std::function<void(std::stop_token)> run;
};

namespace detail {

/// Moves elements from a source to a queue. `Source` is an lvalue reference or an owned type. Several threads may call it at once;
/// each element is added once. `Moves` is true if the elements belong to the source and may be moved from.
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
      left_over_.push_back(std::move(value));  // `enqueue` leaves the value unchanged when it throws
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

/// Returns an operation that puts the elements of `source` into `queue`, in one pass. `source` is a source of batches or any input
/// range. Several threads may run copies of the operation; each element is added by one of them. If adding an element fails, the
/// element is the next one again. Elements are copied, unless the range returns them by value. An lvalue source is referred to, an
/// rvalue is moved into the operation.
/// @lifetime The queue and an lvalue source must outlive the threads that run the operation.
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
