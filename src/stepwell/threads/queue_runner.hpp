// SPDX-License-Identifier: Apache-2.0
//
// Threads that keep a queue filled (contract QR).
#pragma once

#include "stepwell/threads/coordinator.hpp"
#include "stepwell/threads/enqueue_op.hpp"
#include "stepwell/threads/exception_set.hpp"

#include <concepts>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stepwell {

/// What a queue runner needs of its queue: a name, and `close(cancel_pending_enqueues)`, from any thread.
/// Where `close` tells whether it did it and there is a `reopen()`, a queue that its runner closed is opened again when
/// threads are created anew, so that a recovered session can go on with it.
template<class Queue>
concept closable_queue = requires(Queue& queue, bool cancel_pending_enqueues) {
  { queue.name() } -> std::convertible_to<std::string_view>;
  queue.close(cancel_pending_enqueues);
};

/// `close_op` and `cancel_op` must not call the runner; what they throw is ignored.
struct queue_runner_options {
  std::function<void()> close_op = nullptr;           ///< At the end of the input. Null: `queue.close(false)`.
  std::function<void()> cancel_op = nullptr;          ///< At a stop. Null: `queue.close(true)`.
  exception_set queue_closed = {errc::out_of_range};  ///< What a producer throws at the end of its input.
};

/// Runs each of its enqueue operations on a thread of its own, again and again, until the session stops.
///
///     data::fifo_queue<batch> queue({.capacity = 16});
///     auto runner = std::make_shared<queue_runner>(queue, std::vector{enqueue_from(queue, read_batches("train"))});
///
/// An operation that throws an exception of `queue_closed` is at the end of its input: its thread ends quietly, and the
/// last thread of that session closes the queue; so the end of the input reaches the consumer as the end of the queue, and
/// the coordinator hears nothing (QR-5). Any other exception is a failure: with a coordinator it asks for a stop; without
/// one it is logged and kept in `exceptions_raised`, and ends that thread (QR-3). A `cancelled_error` after a stop is the
/// answer to that, and no failure (D-16).
/// @lifetime The queue, and what the operations use, must outlive the threads; the runner need not.
/// @threads  All functions may be called from any thread.
class queue_runner {
public:
  /// Whose threads they are: an address, only compared.
  using session_key = const void*;

  /// @errors `invalid_argument_error` for no operations, an operation without a function, or an empty `queue_closed`
  ///         (QR-1).
  template<closable_queue Queue>
  queue_runner(Queue& queue, std::vector<enqueue_op> ops, queue_runner_options options = {})
      : queue_runner(operations_on(queue), std::move(ops), std::move(options)) {}

  /// One thread for each operation, `QueueRunnerThread-<queue>-<op>`; with a coordinator also `...-close_on_stop`, which
  /// waits for a stop and then cancels what waits for room (QR-4), and all are registered there. Nothing, if threads of
  /// that session still run. Empties `exceptions_raised`. They are not started unless `start` says so (QR-2).
  /// @lifetime The coordinator must outlive the threads, which its `join` waits for.
  /// @errors   `resource_exhausted_error` if the system has no more threads. Those already started end at a stop of the
  ///           coordinator; without one, the queue is cancelled.
  std::vector<coordinated_thread> create_threads(session_key session, coordinator* threads = nullptr, bool start = false);

  /// Operations of that session which have not come to their end.
  [[nodiscard]] std::size_t running(session_key session) const;
  /// Failures that no coordinator was told of, since threads were last created.
  [[nodiscard]] std::vector<std::exception_ptr> exceptions_raised() const;
  /// How many wait in the queue, where it can tell.
  [[nodiscard]] std::optional<std::size_t> depth() const;
  /// The queue's.
  [[nodiscard]] const std::string& name() const noexcept;

private:
  struct operations {
    std::string name;
    std::function<bool()> close;  // both: whether it was this call that closed the queue
    std::function<bool()> cancel;
    std::function<void()> reopen;
    std::function<std::size_t()> depth;
  };
  struct core;
  class turn;

  queue_runner(operations on_queue, std::vector<enqueue_op> ops, queue_runner_options options);
  void start_all(std::vector<coordinated_thread>& made, bool has_coordinator);

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

/// Has all `runners` create and start their threads for a session (QR-6). Warns if there are none.
/// @errors `invalid_argument_error` if `session` is null, or a runner is.
std::vector<coordinated_thread> start_queue_runners(queue_runner::session_key session, coordinator& threads,
                                                    std::span<const std::shared_ptr<queue_runner>> runners);

}  // namespace stepwell
