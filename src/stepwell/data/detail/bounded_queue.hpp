// SPDX-License-Identifier: Apache-2.0
//
// Common base of all queues of batches: capacity, waiting and closing. A store chooses the next element.
#pragma once

#include "stepwell/base/clock.hpp"
#include "stepwell/base/error.hpp"

#include <concepts>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace stepwell::data {

namespace detail {

struct queue_limits {
  std::size_t capacity;
  std::string name;
  std::shared_ptr<clock> time;
};

}  // namespace detail

/// A queue with limited capacity between several producers and several consumers. It is also a source of batches (`batch_source`,
/// not seekable): `session.steps(queue)` ends when the queue is closed and empty.
///
/// `Store` has `push(T&&)`, `pop()`, `size()`, and `can_give(is_closed)`, which returns true if `pop` may be called.
/// @lifetime All blocked calls must return before the queue is destroyed. `close(true)` ends the wait of producers, and the wait of
///           consumers as soon as the queue is empty.
/// @threads  Any number of threads. Only one loop at a time may call `peek` and `advance`.
/// @cost     One lock for each element added or removed. A call that does not block wakes at most one other thread.
template<class T, class Store>
class bounded_queue {
public:
  using value_type = T;

  bounded_queue(const bounded_queue&) = delete;
  bounded_queue& operator=(const bounded_queue&) = delete;

  /// Adds `value`. Blocks while the queue is full. Elements of one producer keep their order.
  /// @errors `cancelled_error` if the queue is closed or `close(true)` ends the wait; `value` is then unchanged.
  void enqueue(T&& value) {
    std::unique_lock lock(mutex_);
    if (is_closed_) { refuse(" is closed"); }
    if (is_full()) { wait_for_room(lock); }
    store_.push(std::move(value));
    if (store_.can_give(is_closed_)) { elements_.notify_one(); }
  }
  void enqueue(const T& value)
    requires std::copy_constructible<T>
  {
    enqueue(T(value));
  }

  /// Removes and returns one element. Blocks until there is one.
  /// @errors `out_of_range_error` if the queue is closed and empty: the end of the data.
  /// @see    contract QR-5
  [[nodiscard]] T dequeue() {
    std::optional<T> taken;
    take_into(taken);
    if (!taken) {
      throw out_of_range_error("the queue \"" + name() + "\" is closed and has insufficient elements (requested 1, current size 0)");
    }
    return std::move(*taken);
  }

  /// Returns the current element of the loop, which was removed from the queue, or null at the end of the data. Blocks like `dequeue`.
  [[nodiscard]] const T* peek() {
    if (!present_) { take_into(present_); }
    return present_ ? std::addressof(*present_) : nullptr;
  }
  void advance() {
    if (peek() != nullptr) { present_.reset(); }
  }

  /// Closes the queue for new elements. The elements inside can still be removed. Producers that are blocked on a full queue stay
  /// blocked, unless `cancel_pending_enqueues` is true. Returns false if the queue was already closed; pending enqueues are
  /// cancelled in this case too.
  bool close(bool cancel_pending_enqueues = false) {
    const std::lock_guard lock(mutex_);
    if (cancel_pending_enqueues) { ++cancels_; }
    room_.notify_all();
    elements_.notify_all();
    return !std::exchange(is_closed_, true);
  }
  /// Reverts a `close`: the queue accepts elements again. The elements inside come first.
  void reopen() {
    const std::lock_guard lock(mutex_);
    is_closed_ = false;
  }

  [[nodiscard]] bool is_closed() const {
    const std::lock_guard lock(mutex_);
    return is_closed_;
  }
  /// Returns the number of elements in the queue, without the current element of the loop.
  [[nodiscard]] std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return store_.size();
  }
  [[nodiscard]] std::size_t capacity() const noexcept { return limits_.capacity; }
  [[nodiscard]] const std::string& name() const noexcept { return limits_.name; }

protected:
  bounded_queue(detail::queue_limits limits, Store store) : limits_(std::move(limits)), store_(std::move(store)) {
    if (limits_.capacity == 0) { throw invalid_argument_error("the queue \"" + name() + "\" has the capacity 0; give it at least 1"); }
  }
  ~bounded_queue() = default;

private:
  static constexpr clock::time_point forever = clock::time_point::max();

  [[nodiscard]] bool is_full() const { return store_.size() >= limits_.capacity; }
  /// Returns true if the queue is closed and empty and no producer is blocked.
  [[nodiscard]] bool is_over() const { return is_closed_ && store_.size() == 0 && pending_ == 0; }

  [[noreturn]] void refuse(const char* why) const { throw cancelled_error("the queue \"" + name() + "\"" + why); }

  void wait_for_room(std::unique_lock<std::mutex>& lock) {
    const auto cancels = cancels_;
    ++pending_;
    limits_.time->wait_until(lock, room_, forever, [&] { return !is_full() || cancels != cancels_; });
    --pending_;
    if (cancels == cancels_) { return; }
    if (is_over()) { elements_.notify_all(); }
    refuse(" was closed: the enqueue operation was cancelled");
  }

  void take_into(std::optional<T>& taken) {
    std::unique_lock lock(mutex_);
    limits_.time->wait_until(lock, elements_, forever, [&] { return store_.can_give(is_closed_) || is_over(); });
    if (is_over()) { return; }
    taken.emplace(store_.pop());
    room_.notify_one();
    if (is_over()) { elements_.notify_all(); }
  }

  const detail::queue_limits limits_;
  mutable std::mutex mutex_;
  std::condition_variable room_;      // producers wait here
  std::condition_variable elements_;  // consumers wait here
  Store store_;
  std::uint64_t cancels_ = 0;  // number of times pending enqueues were cancelled
  std::size_t pending_ = 0;    // number of blocked producers
  bool is_closed_ = false;
  std::optional<T> present_;  // current element of the loop; used without the lock
};

}  // namespace stepwell::data
