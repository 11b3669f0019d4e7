// SPDX-License-Identifier: Apache-2.0
//
// Bounded queues of batches, in first-in, first-out or in random order.
#pragma once

#include "stepwell/base/clock.hpp"
#include "stepwell/base/detail/locks.hpp"
#include "stepwell/base/error.hpp"
#include "stepwell/base/random.hpp"

#include <concepts>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace stepwell::data {

/// A queue with limited capacity between several producers and several consumers. A queue is also a source of batches (`batch_source`,
/// not seekable): `session.steps(queue)` ends when the queue is closed and empty, and no producer is blocked.
///
/// `Store` holds the elements and determines their order. It has `push(T&&)`, `pop()`, `size()`, and `can_give(is_closed)`, which returns
/// true if `pop` may be called.
/// @lifetime All blocked calls must return before the queue is destroyed. To end them, call `close(true)`: blocked producers throw at
///           once, and blocked consumers return as soon as the queue is empty.
/// @threads  Any number of threads. Only one loop at a time may call `peek` and `advance`.
/// @cost     One lock for each element added or removed. Adding or removing an element wakes at most one blocked thread. `close`, and
///           removing the last element of a closed queue, may wake all blocked threads.
template<class T, class Store>
class bounded_queue {
public:
  using value_type = T;

  bounded_queue(const bounded_queue&) = delete;
  bounded_queue& operator=(const bounded_queue&) = delete;

  /// Adds `value`. Blocks while the queue is full. In a `fifo_queue`, the elements of one producer keep their order.
  /// @errors `cancelled_error` if the queue is closed at the time of the call, or if `close(true)` ends the wait. In both cases, `value` is
  ///   unchanged.
  void enqueue(T&& value) {
    stepwell::detail::mutex_lock lock(mutex_);
    if (is_closed_) { throw_cancelled(" is closed"); }
    if (is_full()) { wait_for_space(lock); }
    store_.push(std::move(value));
    if (store_.can_give(is_closed_)) { not_empty_.notify_one(); }
  }
  void enqueue(const T& value)
    requires std::copy_constructible<T>
  {
    enqueue(T(value));
  }

  /// Removes and returns one element. Blocks until an element can be removed. In a `shuffle_queue` that is not closed, at least
  /// `min_after_dequeue` elements stay in the queue.
  /// @errors `out_of_range_error` at the end of the data: the queue is closed and empty, and no producer is blocked.
  /// @see    contract QR-5
  [[nodiscard]] T dequeue() {
    std::optional<T> taken;
    take_into(taken);
    if (!taken) {
      throw out_of_range_error("the queue \"" + name() + "\" is closed and has insufficient elements (requested 1, current size 0)");
    }
    return std::move(*taken);
  }

  /// Returns the current element of the loop, or null at the end of the data. The current element is no longer in the queue. If there is no
  /// current element yet, removes one from the queue, and blocks like `dequeue`.
  [[nodiscard]] const T* peek() {
    if (!current_) { take_into(current_); }
    return current_ ? std::addressof(*current_) : nullptr;
  }
  /// Drops the current element, so that the next `peek` returns another element. If there is no current element, removes one from the queue
  /// first, and may block like `peek`.
  void advance() {
    if (peek() != nullptr) { current_.reset(); }
  }

  /// Closes the queue for new elements. The elements that are in the queue can still be removed. If `cancel_pending_enqueues` is false,
  /// blocked producers stay blocked, and add their elements when there is space. If it is true, the calls of blocked producers throw
  /// `cancelled_error`. A second call with true therefore ends the wait of producers that the first call left blocked. Returns false if the
  /// queue was closed before.
  bool close(bool cancel_pending_enqueues = false) {
    const stepwell::detail::mutex_lock lock(mutex_);
    if (cancel_pending_enqueues) { ++cancel_count_; }
    not_full_.notify_all();
    not_empty_.notify_all();
    return !std::exchange(is_closed_, true);
  }
  /// Reverts a `close`: the queue accepts elements again. The elements that are already in the queue stay there.
  void reopen() {
    const stepwell::detail::mutex_lock lock(mutex_);
    is_closed_ = false;
  }

  [[nodiscard]] bool is_closed() const {
    const stepwell::detail::mutex_lock lock(mutex_);
    return is_closed_;
  }
  /// Returns the number of elements in the queue, without the current element of the loop.
  [[nodiscard]] std::size_t size() const {
    const stepwell::detail::mutex_lock lock(mutex_);
    return store_.size();
  }
  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }

protected:
  bounded_queue(std::size_t capacity, std::string name, std::shared_ptr<clock> time, Store store)
      : capacity_(capacity), name_(std::move(name)), time_(std::move(time)), store_(std::move(store)) {
    if (capacity_ == 0) { throw invalid_argument_error("the queue \"" + name_ + "\" has the capacity 0; give it at least 1"); }
  }
  ~bounded_queue() = default;

private:
  static constexpr clock::time_point forever = clock::time_point::max();

  [[nodiscard]] bool is_full() const STEPWELL_HOLDS(mutex_) { return store_.size() >= capacity_; }
  /// Returns true at the end of the data: the queue is closed and empty, and no producer is blocked.
  [[nodiscard]] bool is_over() const STEPWELL_HOLDS(mutex_) { return is_closed_ && store_.size() == 0 && blocked_producers_ == 0; }

  [[noreturn]] void throw_cancelled(const char* why) const { throw cancelled_error("the queue \"" + name() + "\"" + why); }

  void wait_for_space(stepwell::detail::mutex_lock& lock) STEPWELL_HOLDS(mutex_) {
    const auto count_before = cancel_count_;
    ++blocked_producers_;
    time_->wait_until(lock, not_full_, forever, [&]() STEPWELL_HOLDS(mutex_) { return !is_full() || count_before != cancel_count_; });
    --blocked_producers_;
    if (count_before == cancel_count_) { return; }
    if (is_over()) { not_empty_.notify_all(); }
    throw_cancelled(" was closed: the enqueue operation was cancelled");
  }

  void take_into(std::optional<T>& taken) {
    stepwell::detail::mutex_lock lock(mutex_);
    time_->wait_until(lock, not_empty_, forever, [&]() STEPWELL_HOLDS(mutex_) { return store_.can_give(is_closed_) || is_over(); });
    if (is_over()) { return; }
    taken.emplace(store_.pop());
    not_full_.notify_one();
    if (is_over()) { not_empty_.notify_all(); }
  }

  const std::size_t capacity_;
  const std::string name_;
  const std::shared_ptr<clock> time_;
  mutable stepwell::detail::checked_mutex mutex_;
  std::condition_variable not_full_;   // producers wait here
  std::condition_variable not_empty_;  // consumers wait here
  Store store_ STEPWELL_GUARDED_BY(mutex_);
  std::uint64_t cancel_count_ STEPWELL_GUARDED_BY(mutex_) = 0;     // number of times pending enqueues were cancelled
  std::size_t blocked_producers_ STEPWELL_GUARDED_BY(mutex_) = 0;  // number of blocked producers
  bool is_closed_ STEPWELL_GUARDED_BY(mutex_) = false;
  std::optional<T> current_;  // current element of the loop; used without the lock
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

/// Options of a `fifo_queue`.
struct fifo_queue_options {
  std::size_t capacity = 32;  ///< Maximum number of elements, above zero.
  std::string name = "fifo_queue";
  std::shared_ptr<stepwell::clock> clock = system_clock();  ///< Clock for waiting.
};

/// A `bounded_queue` that returns its elements in the order in which they were added.
///
///     stepwell::data::fifo_queue<batch> queue({.capacity = 16});
template<std::move_constructible T>
class fifo_queue : public bounded_queue<T, detail::fifo_store<T>> {
public:
  /// Creates an empty queue.
  /// @errors `invalid_argument_error` if the capacity is 0.
  explicit fifo_queue(fifo_queue_options options = {})
      : bounded_queue<T, detail::fifo_store<T>>(options.capacity, std::move(options.name), std::move(options.clock), {}) {}
};

/// Options of a `shuffle_queue`.
struct shuffle_queue_options {
  std::size_t capacity = 1024;        ///< Maximum number of elements, above `min_after_dequeue`.
  std::size_t min_after_dequeue = 0;  ///< Number of elements that stay in the queue for mixing, until the queue is closed.
  std::uint64_t seed = 0;
  std::string name = "shuffle_queue";
  std::shared_ptr<stepwell::clock> clock = system_clock();  ///< Clock for waiting.
};

/// A `bounded_queue` that returns a random element; all elements in the queue are equally likely. The same calls in the same order with the
/// same seed return the same elements.
///
///     stepwell::data::shuffle_queue<example> queue({.capacity = 10'000, .min_after_dequeue = 5'000, .seed = 1});
template<class T>
  requires std::movable<T>
class shuffle_queue : public bounded_queue<T, detail::shuffle_store<T>> {
public:
  /// Creates an empty queue.
  /// @errors `invalid_argument_error` if the capacity is not greater than `min_after_dequeue`: no element could ever be removed.
  explicit shuffle_queue(shuffle_queue_options options = {})
      : bounded_queue<T, detail::shuffle_store<T>>(options.capacity, options.name, std::move(options.clock),
                                                   {options.min_after_dequeue, options.seed}) {
    if (options.capacity > options.min_after_dequeue) { return; }
    throw invalid_argument_error("the queue \"" + options.name + "\" has min_after_dequeue " + std::to_string(options.min_after_dequeue) +
                                 " and capacity " + std::to_string(options.capacity) +
                                 ": no element could be dequeued; increase the capacity");
  }
};

}  // namespace stepwell::data
