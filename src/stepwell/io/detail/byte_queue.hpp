// SPDX-License-Identifier: Apache-2.0
//
// A bounded queue between producers of records and the disk. Producers copy their bytes to memory and continue. A task on the pool writes
// the bytes in large pieces.
#pragma once

#include "stepwell/base/clock.hpp"
#include "stepwell/base/detail/locks.hpp"
#include "stepwell/base/error.hpp"
#include "stepwell/io/file_system.hpp"
#include "stepwell/io/pool.hpp"

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <utility>

namespace stepwell::io {

/// An interface that accepts bytes in order.
/// @errors  An exception of a function counts as the error `unknown` with its text.
/// @threads The functions are called by one thread at a time. The thread may change between calls.
class byte_sink {
public:
  byte_sink() = default;
  byte_sink(const byte_sink&) = delete;
  byte_sink& operator=(const byte_sink&) = delete;
  virtual ~byte_sink() = default;

  /// Appends all of `bytes`. The queue does not call it again after an error.
  virtual result<void> write(std::span<const std::byte> bytes) = 0;
  /// Makes all written bytes durable.
  virtual result<void> sync() = 0;
  /// Called once, after all other calls, also after an error.
  virtual result<void> close() = 0;
};

/// Returns a sink that writes to `target`, beginning at `offset`.
[[nodiscard]] std::unique_ptr<byte_sink> sink_into(std::unique_ptr<file> target, std::uint64_t offset = 0);

/// The options of a queue.
struct byte_queue_options {
  std::size_t capacity_bytes = std::size_t{4} << 20;        ///< Memory, divided into two halves: one is filled while the other is written.
  std::size_t write_at_bytes = std::size_t{256} << 10;      ///< Number of queued bytes that starts the writer; at most half the capacity.
  std::shared_ptr<pool> threads = pool::shared();           ///< The pool that runs the writer.
  std::shared_ptr<stepwell::clock> clock = system_clock();  ///< The clock for all waits.
};

/// A queue that accepts records and writes them in the background, in the order of the calls.
///
///     queue.append(record_size(payload), [&](std::byte* into) { return encode_record(into, payload); });
///
/// The queue writes when `write_at_bytes` are queued, when it is full, and at a flush. For periodic writes call `request_flush`
/// periodically. `append` blocks while the queue is full.
///
/// The first failure ends the queue. Queued bytes are dropped, blocked callers are woken, and `append`, `flush` and `close` return that
/// failure from then on. To continue, create a new queue with a new sink.
/// During a write the recorder of the thread is the one that was current when the last of the bytes were appended. During a sync it is the
/// one that was current when the last flush was requested (see base/trace.hpp).
/// @pre     No thread of the pool that writes calls `append`, `flush` or `close`. It may call `pending_flush::wait`.
/// @threads Any thread, with any number of producers. `close` and the destruction are called once.
class byte_queue {
  struct core;

public:
  /// The time point that means no deadline.
  static constexpr clock::time_point forever = clock::time_point::max();

  /// Creates a queue that writes to `sink`. @errors `resource_exhausted_error` if there is not enough memory for the capacity.
  explicit byte_queue(std::unique_ptr<byte_sink> sink, byte_queue_options options = {});
  byte_queue(const byte_queue&) = delete;
  byte_queue& operator=(const byte_queue&) = delete;
  /// Calls `close` without a deadline, and logs its error.
  ~byte_queue();

  /// Appends one record that `frame` writes directly into the queue. `frame` gets memory for `max_bytes` and returns the number of bytes
  /// used. It runs under the lock of the queue, so it must be short and must not call the queue. If it throws, no bytes are queued.
  /// Blocks while the queue is full. A record larger than half the capacity waits until one half is empty; that half then grows.
  /// @errors The first failure of the sink. `failed_precondition` if the queue is closed. `resource_exhausted` if a half cannot grow.
  ///         `deadline_exceeded` if the queue is full at the time of `limit_waits`.
  /// @cost   One lock and the call of `frame`. No allocation, except for a record larger than half the capacity.
  template<class Frame>
  result<void> append(std::size_t max_bytes, Frame&& frame) {
    auto reserved = reserve(max_bytes);
    if (reserved.bytes == nullptr) [[unlikely]] { return std::move(*reserved.refusal); }
    const std::size_t used = std::forward<Frame>(frame)(reserved.bytes);
    assert(used <= max_bytes);
    commit(used);
    return {};
  }

  /// Like the other overload, but copies `record` into the queue.
  result<void> append(std::span<const std::byte> record);

  /// Returns true if a record of `bytes` can be appended now without blocking. If the queue has one producer, this stays true until the
  /// producer appends a record, except that the queue can fail or be closed.
  [[nodiscard]] bool has_space(std::size_t bytes) const;
  /// Blocks like `append` of a record of `bytes`, but appends nothing.
  /// @errors Like `append`.
  result<void> wait_for_space(std::size_t bytes);

  /// A requested flush. Another thread may wait for it.
  /// @lifetime May outlive the queue.
  class pending_flush {
  public:
    /// Blocks until all bytes queued before the request are written and synced, at most until `until`, or until a stop is requested for
    /// `stop`. If the task of the writer has not begun, it runs on this thread. The function may therefore be called on a thread of the
    /// pool. While the task runs on this thread, the sink can delay the return beyond `until`.
    /// @errors The first failure of the sink, unless the bytes were synced before it. `deadline_exceeded` if the work is not complete; it
    ///         then continues.
    [[nodiscard]] result<void> wait(clock::time_point until = forever, const std::stop_token& stop = {}) const;
    /// Like `wait`, but leaves the work to the pool, so that no disk delays this thread beyond `until`.
    [[nodiscard]] result<void> wait_for_pool(clock::time_point until, const std::stop_token& stop = {}) const;
    /// Returns the clock on which `wait` waits.
    [[nodiscard]] const clock& time() const noexcept;
    /// Returns true if no bytes were queued since the request.
    [[nodiscard]] bool is_all() const;

  private:
    friend class byte_queue;
    pending_flush(std::shared_ptr<core> queue, std::uint64_t target) noexcept;

    std::shared_ptr<core> queue_;
    std::uint64_t target_;  // number of bytes since the creation of the queue
  };

  /// Limits the time for which `append` blocks: it blocks at most until `until`, also if it is blocked already. `append` then returns
  /// `deadline_exceeded`, and its record is not queued.
  void limit_waits(clock::time_point until);

  /// Requests that all queued bytes are written and synced. Does not wait.
  void request_flush();
  /// Like `request_flush`, but returns an object to wait for the flush, also on a thread of the pool.
  [[nodiscard]] pending_flush start_flush();

  /// Blocks until all bytes queued before the call are written and synced, or until `until`.
  /// @errors The first failure of the sink, unless the bytes were synced before it. `deadline_exceeded` if the work is not complete at
  ///         `until`; it then continues.
  result<void> flush(clock::time_point until = forever);

  /// Flushes, then closes and destroys the sink on the calling thread. `until` limits the wait for the flush, but not the time that the
  /// sink needs to close. `append` fails from then on, including calls that are blocked. The second call does nothing.
  /// @errors The errors of `flush`, then those of closing the sink. After `deadline_exceeded` the writer continues as after `detach`.
  result<void> close(clock::time_point until = forever);

  /// Like `close`, but does not wait. The queued bytes are written and synced on the pool, and then the sink is closed and destroyed there.
  /// A failure is reported to the action of `on_failure`.
  void detach();

  /// Returns true if the queue has failed. @cost One relaxed load, so it can be called at each step.
  [[nodiscard]] bool has_failed() const noexcept;
  /// Returns the first failure, or nullopt if there is none.
  [[nodiscard]] std::optional<status> failure() const;

  /// Calls `action` once with the first failure, at once if there is one already. `action` must not wait for this queue. After `close` has
  /// returned a result other than `deadline_exceeded`, `action` is not called. A second call of this function replaces the action.
  /// @threads `action` runs on the thread that runs the writer: a thread of the pool, or a thread in `pending_flush::wait`. If there is a
  ///          failure already, it runs on the calling thread.
  void on_failure(std::function<void(const status&)> action);

private:
  /// Memory for a record and the lock that protects it, or the error if no memory is available.
  struct reservation {
    stepwell::detail::mutex_lock lock;
    std::byte* bytes = nullptr;
    std::optional<status> refusal;
  };
  [[nodiscard]] reservation reserve(std::size_t max_bytes) STEPWELL_UNCHECKED_LOCKS;  // the lock is in the result
  void commit(std::size_t used) STEPWELL_UNCHECKED_LOCKS;

  std::shared_ptr<core> core_;  // shared with the task of the writer
};

}  // namespace stepwell::io
