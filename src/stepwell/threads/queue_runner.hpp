// SPDX-License-Identifier: Apache-2.0
//
// Threads that fill a queue.
// @see contract QR
#pragma once

#include "stepwell/base/detail/locks.hpp"
#include "stepwell/base/error.hpp"
#include "stepwell/data/source.hpp"
#include "stepwell/threads/coordinator.hpp"

#include <concepts>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <ranges>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace stepwell {

/// An operation that puts one or a few elements into a queue at each call of `run`. `run` throws `out_of_range_error` at the end of the
/// input. The argument of `run` is a token that reports a stop of the coordinator. `run` may ignore the token, because the queue runner
/// checks the token between two calls.
struct enqueue_op {
  std::string name;
  std::function<void(std::stop_token)> run;
};

namespace detail {

/// Moves elements from a source to a queue. `Source` is an lvalue reference or an owned type. Several threads may call `feed_one` at once;
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
      const detail::mutex_lock lock(mutex_);
      left_over_.push_back(std::move(value));  // `enqueue` leaves the value unchanged when it throws
      throw;
    }
  }

private:
  value_type next() {
    const detail::mutex_lock lock(mutex_);
    if (!left_over_.empty()) {
      value_type value = std::move(left_over_.back());
      left_over_.pop_back();
      return value;
    }
    auto* const present = source_.peek();
    if (present == nullptr) { throw out_of_range_error("\"" + name_ + "\" is at the end of its input"); }
    auto value = [&] {
      if constexpr (Moves) {
        return value_type(std::move(*present));
      } else {
        return value_type(*present);
      }
    }();
    source_.advance();
    return value;
  }

  Queue& queue_;
  Source source_;
  std::string name_;
  detail::checked_mutex mutex_;
  std::vector<value_type> left_over_ STEPWELL_GUARDED_BY(mutex_);
};

template<bool Moves, class Queue, class Source>
enqueue_op feed(Queue& queue, Source&& source, std::string name) {
  auto feeding = std::make_shared<feeder<Queue, Source, Moves>>(queue, std::forward<Source>(source), name);
  return {std::move(name), [feeding = std::move(feeding)](const std::stop_token&) { feeding->feed_one(); }};
}

}  // namespace detail

/// Returns an operation that puts the next element of `source` into `queue` at each call, until the end of the source. `source` is a source
/// of batches or any input range. Several threads may run copies of the operation; each element is added by one of them. If adding an
/// element fails, the next call adds this element. Elements are copied, but if a range returns its elements by value, they are moved. The
/// operation refers to an lvalue source; an rvalue source is moved into the operation.
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

/// A queue for a queue runner. It has a name, and `close(cancel_pending_enqueues)`, which may be called from any thread. A recovered
/// session can continue with the queue if, in addition, `close` returns a bool (true if this call closed the queue) and the queue has
/// `reopen()`. If the runner closed such a queue, the runner reopens it when threads are created again.
template<class Queue>
concept closable_queue = requires(Queue& queue, bool cancel_pending_enqueues) {
  { queue.name() } -> std::convertible_to<std::string_view>;
  queue.close(cancel_pending_enqueues);
};

/// Options of a queue runner. `close_op` and `cancel_op` must not call the runner. Exceptions that they throw are ignored.
struct queue_runner_options {
  std::function<void()> close_op = nullptr;           ///< Called at the end of the input. Null: `queue.close(false)`.
  std::function<void()> cancel_op = nullptr;          ///< Called at a stop. Null: `queue.close(true)`.
  exception_set queue_closed = {errc::out_of_range};  ///< Exceptions that mean the end of the input.
};

/// Runs each of its enqueue operations repeatedly on a separate thread, until the end of the input or a stop of the coordinator.
///
///     data::fifo_queue<batch> queue({.capacity = 16});
///     auto runner = std::make_shared<queue_runner>(queue, std::vector{enqueue_from(queue, read_batches("train"))});
///
/// If an operation throws an exception in the set `queue_closed` (an option), the input of the operation has ended. The thread of the
/// operation then ends without a message, and the coordinator is not notified. If this thread is the last one of its session, it closes the
/// queue, so that the consumer sees the end of the input as the end of the queue. Any other exception is a failure and ends the thread.
/// With a coordinator, the failure requests a stop, but a `cancelled_error` after a stop is not a failure. Without a coordinator, the
/// failure is logged and kept in `exceptions_raised`.
/// @lifetime The queue and the objects that the operations use must outlive the threads. The runner may be destroyed earlier.
/// @threads  All functions may be called from any thread.
/// @see      contract QR-3, QR-5, decision D-16
class queue_runner {
public:
  /// Address that identifies the session to which threads belong. The address is only compared, never dereferenced.
  using session_key = const void*;

  /// Creates a runner without threads.
  /// @errors `invalid_argument_error` if there are no operations, an operation has no function, or `queue_closed` is empty.
  /// @see    contract QR-1
  template<closable_queue Queue>
  queue_runner(Queue& queue, std::vector<enqueue_op> ops, queue_runner_options options = {})
      : queue_runner(operations_on(queue), std::move(ops), std::move(options)) {}

  /// Creates one thread for each operation, named `QueueRunnerThread-<queue>-<op>`. With a coordinator, registers these threads at the
  /// coordinator, and adds the thread `QueueRunnerThread-<queue>-close_on_stop`, which waits for a stop and then cancels pending enqueues.
  /// The threads are started only if `start` is true. Clears `exceptions_raised`. If threads of `session` have not ended yet, does nothing
  /// and returns an empty list.
  /// @lifetime The coordinator must outlive the threads; its `join` waits for them.
  /// @errors   `resource_exhausted_error` if the system cannot create a thread. The threads that were already started then end when the
  ///   coordinator is stopped. Without a coordinator, their enqueue operations are cancelled at once.
  /// @see      contract QR-2, QR-4
  std::vector<coordinated_thread> create_threads(session_key session, coordinator* threads = nullptr, bool start = false);

  /// Returns the number of operations of `session` that have not ended.
  [[nodiscard]] std::size_t running(session_key session) const;
  /// Returns the failures of threads without a coordinator. The list begins anew when threads are created.
  [[nodiscard]] std::vector<std::exception_ptr> exceptions_raised() const;
  /// Returns the number of elements in the queue. Empty if the queue has no `size()`.
  [[nodiscard]] std::optional<std::size_t> depth() const;
  /// Returns the name of the queue.
  [[nodiscard]] const std::string& name() const noexcept;

private:
  struct operations {
    std::string name;
    std::function<bool()> close;  // `close` and `cancel` return true if the call closed the queue
    std::function<bool()> cancel;
    std::function<void()> reopen;
    std::function<std::size_t()> depth;
  };
  struct core;
  class turn;

  queue_runner(operations on_queue, std::vector<enqueue_op> ops, queue_runner_options options);

  template<class Queue>
  static operations operations_on(Queue& queue) {
    operations on;
    on.name = std::string(std::string_view(queue.name()));
    if constexpr (requires {
                    { queue.close(true) } -> std::same_as<bool>;
                    queue.reopen();
                  }) {
      on.close = [&queue] { return queue.close(false); };
      on.cancel = [&queue] { return queue.close(true); };
      on.reopen = [&queue] { queue.reopen(); };
    } else {
      on.close = [&queue] { return static_cast<void>(queue.close(false)), false; };
      on.cancel = [&queue] { return static_cast<void>(queue.close(true)), false; };
    }
    if constexpr (requires {
                    { queue.size() } -> std::convertible_to<std::size_t>;
                  }) {
      on.depth = [&queue]() -> std::size_t { return queue.size(); };
    }
    return on;
  }

  std::shared_ptr<core> core_;  // shared with the threads
};

/// Creates and starts the threads of all `runners` for a session. Logs a warning if `runners` is empty.
/// @errors `invalid_argument_error` if `session` or a runner is null.
/// @see    contract QR-6
std::vector<coordinated_thread> start_queue_runners(queue_runner::session_key session, coordinator& threads,
                                                    std::span<const std::shared_ptr<queue_runner>> runners);

}  // namespace stepwell
