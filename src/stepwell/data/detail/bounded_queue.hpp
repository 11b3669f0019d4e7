// SPDX-License-Identifier: Apache-2.0
//
// What all queues of batches share: limits, waiting, closing. A store decides which element comes out next.
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

/// Holds at most so many elements between several producers and several consumers, and is a source of batches besides
/// (`batch_source`, not seekable): `session.steps(queue)` ends once the queue is closed and empty.
///
/// `Store` has `push(T&&)`, `pop()`, `size()`, and `can_give(is_closed)`: whether `pop` may be called.
/// @lifetime Whoever waits in a call must have left it before the queue ends: `close(true)` sends producers away, and
///           consumers as soon as it is empty.
/// @threads  Any, any number at a time; but `peek` and `advance` are for one loop at a time.
/// @cost     One lock for each element put in or taken out; a call that need not wait wakes at most one other thread.
template<class T, class Store>
class bounded_queue {
public:
  using value_type = T;

  bounded_queue(const bounded_queue&) = delete;
  bounded_queue& operator=(const bounded_queue&) = delete;

  /// Puts `value` in; waits while the queue is full. Elements of one producer keep their order.
  /// @errors `cancelled_error` once the queue is closed, or when `close(true)` cancels the wait; `value` is then as it was.
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

  /// Takes one element out; waits while there is none to be had.
  /// @errors `out_of_range_error` once the queue is closed and empty: the end of the data (contract QR-5).
  [[nodiscard]] T dequeue() {
    std::optional<T> taken;
    take_into(taken);
    if (!taken) {
      throw out_of_range_error("the queue \"" + name() + "\" is closed and has insufficient elements (requested 1, current size 0)");
    }
    return std::move(*taken);
  }

  /// The element that a loop is at, which is in the queue no more; null at the end of the data. Waits like `dequeue`.
  [[nodiscard]] const T* peek() {
    if (!present_) { take_into(present_); }
    return present_ ? std::addressof(*present_) : nullptr;
  }
  void advance() {
    if (peek() != nullptr) { present_.reset(); }
  }

  /// Lets nothing new in; what is inside can still be taken out. Producers that wait for room go on waiting, unless
  /// `cancel_pending_enqueues`. False if it was closed before (pending enqueues are cancelled all the same).
  bool close(bool cancel_pending_enqueues = false) {
    const std::lock_guard lock(mutex_);
    if (cancel_pending_enqueues) { ++cancels_; }
    room_.notify_all();
    elements_.notify_all();
    return !std::exchange(is_closed_, true);
  }
  /// Takes a `close` back: elements are let in again, after those still inside.
  void reopen() {
    const std::lock_guard lock(mutex_);
    is_closed_ = false;
  }

  [[nodiscard]] bool is_closed() const {
    const std::lock_guard lock(mutex_);
    return is_closed_;
  }
  /// Elements inside; the one that a loop is at is not.
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
  /// Closed, empty, and nobody left who may still put something in.
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
  std::condition_variable room_;      // for producers
  std::condition_variable elements_;  // for consumers
  Store store_;
  std::uint64_t cancels_ = 0;  // of pending enqueues, so far
  std::size_t pending_ = 0;    // producers that wait for room
  bool is_closed_ = false;
  std::optional<T> present_;  // of the one loop, without the lock
};

}  // namespace stepwell::data
