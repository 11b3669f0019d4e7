// SPDX-License-Identifier: Apache-2.0
//
// The bounded queue between those who have something to tell and the disk: they leave their bytes in memory and go on,
// a task on the pool writes them in large pieces.
#pragma once

#include "stepwell/base/clock.hpp"
#include "stepwell/base/result.hpp"
#include "stepwell/io/detail/byte_sink.hpp"
#include "stepwell/io/pool.hpp"

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>

namespace stepwell::io {

struct byte_queue_options {
  std::size_t capacity_bytes = std::size_t{4} << 20;    ///< of memory, in two halves: one fills, one is written
  std::size_t write_at_bytes = std::size_t{256} << 10;  ///< so much wakes the writer; at most half the capacity
  std::shared_ptr<pool> threads = pool::shared();       ///< where the writer runs
  std::shared_ptr<clock> time = system_clock();         ///< what waits go through
};

/// Takes records in, writes them behind the caller's back, in the order of the calls.
///
///     queue.append(record_size(payload), [&](std::byte* into) { return encode_record(into, payload); });
///
/// Nothing is written before `write_at_bytes` wait or somebody flushes: who wants bytes out every so often calls
/// `request_flush` every so often. A full queue blocks the caller until there is room.
///
/// The first failure ends the queue: what waits is dropped, those who wait are woken, and `append`, `flush` and
/// `close` give that failure from then on. Whoever wants to go on opens a new queue on a new sink.
/// While the sink works, the trace is in force that was in force where the last of its bytes were appended, or the last
/// flush was asked for (see base/trace.hpp).
/// @pre     Nobody appends, flushes or closes on a thread of the pool that is to write, but for `pending_flush::wait`.
/// @threads Any, any number of producers; `close` and the end of the queue once.
class byte_queue {
  struct core;

public:
  /// No deadline.
  static constexpr clock::time_point forever = clock::time_point::max();

  /// @errors `resource_exhausted_error` without memory for the capacity.
  explicit byte_queue(std::unique_ptr<byte_sink> sink, byte_queue_options options = {});
  byte_queue(const byte_queue&) = delete;
  byte_queue& operator=(const byte_queue&) = delete;
  /// `close` without a deadline; its error is logged.
  ~byte_queue();

  /// Lets `frame` write one record straight into the queue: it gets room for `max_bytes` and returns how many it used.
  /// It runs under the lock of the queue: keep it short, call nothing of the queue. If it throws, nothing is queued.
  /// Blocks while the queue is full. A record larger than half the capacity waits for an empty half, which grows for it.
  /// @errors The first failure of the sink; `failed_precondition` once closed; `resource_exhausted` if it cannot grow.
  /// @cost   The lock and the frame; no allocation.
  template<class Frame>
  result<void> append(std::size_t max_bytes, Frame&& frame) {
    auto place = make_room(max_bytes);
    if (place.bytes == nullptr) [[unlikely]] { return std::move(*place.refusal); }
    const std::size_t used = std::forward<Frame>(frame)(place.bytes);
    assert(used <= max_bytes);
    commit(place, used);
    return {};
  }

  /// Copies `record` into the queue; otherwise as above.
  result<void> append(std::span<const std::byte> record);

  /// A flush that was requested and may be waited for elsewhere.
  /// @lifetime May outlive the queue.
  class pending_flush {
  public:
    /// Blocks until all that was queued before the request is written and synced. Writes it on this thread if the writer's
    /// task has not begun; so it may be called on a thread of the pool.
    /// @errors The first failure of the sink, unless the bytes were synced before it.
    [[nodiscard]] result<void> wait() const;
    /// True if nothing was queued since the request.
    [[nodiscard]] bool is_all() const;

  private:
    friend class byte_queue;
    pending_flush(std::shared_ptr<core> queue, std::uint64_t target) noexcept;

    std::shared_ptr<core> queue_;
    std::uint64_t target_;  // bytes since the beginning
  };

  /// Asks that all queued so far be written and synced, and does not wait.
  void request_flush();
  /// Like `request_flush`. Returns what a thread of the pool may wait for.
  [[nodiscard]] pending_flush start_flush();

  /// Returns once all that was queued before the call is written and synced, at the latest at `until`.
  /// @errors The first failure of the sink, unless all that was safe by then; `deadline_exceeded`: still under way.
  result<void> flush(clock::time_point until = forever);

  /// `flush`, then closes the sink. Appending is over; those who are blocked are refused. The second call does nothing.
  /// @errors As `flush`, then those of closing. After `deadline_exceeded` the sink is closed whenever it is done.
  result<void> close(clock::time_point until = forever);

  /// Like `close`, but waits for nothing: what is queued is written and synced on the pool, and then the sink is destroyed.
  /// A failure is told to `on_failure`.
  void detach();

  /// True once there is a failure. @cost One relaxed load: ask it at each step.
  [[nodiscard]] bool has_failed() const noexcept;
  [[nodiscard]] std::optional<status> failure() const;

  /// Calls `action` once with the first failure, on a thread of the pool; at once if there is one already. It must not
  /// wait for this queue. Not called once `close` has returned without `deadline_exceeded`.
  void on_failure(std::function<void(const status&)> action);

private:
  /// Room for a record while the lock is held, or the reason why there is none.
  struct room {
    std::unique_lock<std::mutex> lock;
    std::byte* bytes = nullptr;
    std::optional<status> refusal;
  };
  [[nodiscard]] room make_room(std::size_t max_bytes);
  void commit(room& place, std::size_t used);

  std::shared_ptr<core> core_;  // shared with the writer's task
};

}  // namespace stepwell::io
