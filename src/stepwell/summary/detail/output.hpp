// SPDX-License-Identifier: Apache-2.0
//
// Private to summary: one file that is written in the background and whose failure is thrown once.
#pragma once

#include "stepwell/base/cadence.hpp"
#include "stepwell/base/clock.hpp"
#include "stepwell/base/detail/locks.hpp"
#include "stepwell/base/error.hpp"
#include "stepwell/io/detail/byte_queue.hpp"

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace stepwell::summary {

/// Throws `invalid_argument_error` that names the option, if the limit of a queue is 0 or the flush period is negative.
void check_limits(std::size_t max_queue_bytes, seconds_value flush_secs);

/// Returns the options of a writer of any kind.
/// @errors Those of `check_limits`.
template<class Options>
[[nodiscard]] const Options& checked(const Options& options) {
  check_limits(options.max_queue_bytes, options.flush_secs);
  return options;  // NOLINT(bugprone-return-const-ref-from-parameter): the caller owns the options
}

/// A file behind a queue, with flush timer, failure and close.
/// @threads Any.
class output {
public:
  /// Creates the queue and the flush timer. `options` are the options of a writer of any kind: they give the clock, the flush period, and
  /// the limits of the queue. `name` is used in log messages, such as "event writer of run".
  template<class Options>
  output(std::unique_ptr<io::byte_sink> sink, std::string name, const Options& options)
      : name_(std::move(name)), time_(options.clock), flush_secs_(options.flush_secs),
        queue_(std::move(sink), {.capacity_bytes = options.max_queue_bytes, .threads = options.threads, .clock = options.clock}) {
    queue_.on_failure([listeners = listeners_](const status& failure) { listeners->notify(failure); });
    arm_flush_timer();
  }

  /// Appends a record, like `byte_queue::append`. Throws a failure once. After that, as after `close`, it drops the record with a warning.
  /// Also drops the record if the queue is full at the time of `limit_waits`, and warns about the first such record.
  template<class Frame>
  void append(std::size_t size, Frame&& frame) {
    if (auto queued = queue_.append(size, std::forward<Frame>(frame)); !queued) [[unlikely]] { return refused(queued.error()); }
    start_due_flush();
  }

  /// Appends a record for which the queue has space, without blocking. Does not throw the failure of a write: the next call that may throw
  /// it throws it. Starts no flush.
  template<class Frame>
  void append_at_once(std::size_t size, Frame&& frame) {
    if (auto queued = queue_.append(size, std::forward<Frame>(frame)); !queued) [[unlikely]] { warn_lost(queued.error()); }
  }
  /// Returns true if `append_at_once` can append a record of this size.
  [[nodiscard]] bool has_space(std::size_t size) const { return queue_.has_space(size); }
  /// Blocks while the queue has no space for a record of this size. Otherwise like `append`: throws a failure once, and returns false with a
  /// warning if such a record would be dropped.
  [[nodiscard]] bool wait_for_space(std::size_t size);
  /// Starts a flush if the flush timer has expired.
  void start_due_flush() {
    if (flush_due_->load(std::memory_order_relaxed)) [[unlikely]] { flush_if_due(); }
  }

  /// Returns true if records are accepted. Otherwise warns that a record is dropped and returns false.
  [[nodiscard]] bool accepts() const {
    if (!is_over()) [[likely]] { return true; }
    warn_dropped();
    return false;
  }
  [[nodiscard]] bool is_over() const noexcept { return is_over_.load(std::memory_order_relaxed); }
  [[nodiscard]] bool has_failed() const noexcept { return queue_.has_failed(); }
  [[nodiscard]] std::optional<status> failure() const { return queue_.failure(); }
  [[nodiscard]] const std::shared_ptr<clock>& time() const noexcept { return time_; }
  /// Registers a callback for the first failure. Calls it at once if the failure has happened already.
  void on_failure(std::function<void(const status&)> action) { listeners_->add(std::move(action)); }

  void limit_waits(clock::time_point until) { queue_.limit_waits(until); }
  void flush(clock::time_point until);
  void request_flush();
  /// Starts a flush. May be called after `close`: a `close` that reaches its deadline returns before all bytes are written.
  [[nodiscard]] io::byte_queue::pending_flush start_flush() { return queue_.start_flush(); }
  void close(clock::time_point until);
  /// Starts a flush. A later `end` does not wait, unless records are added after the start of this flush.
  void detach();
  /// Ends the output; called by the destructor of its writer. Calls `close_writer` with a deadline, and logs a failure. If the last flush
  /// reached its deadline, the deadline is now, otherwise there is none. After `detach`, does not wait: later failures are logged as well.
  void end(const char* kind, const std::string& path, const std::function<void(clock::time_point)>& close_writer);

private:
  /// Callbacks for a failure. The queue shares ownership of them, because it may report a failure after the output was destroyed.
  class failure_listeners {
  public:
    void add(std::function<void(const status&)> action);
    void notify(const status& failure);

  private:
    stepwell::detail::checked_mutex mutex_;
    std::optional<status> happened_ STEPWELL_GUARDED_BY(mutex_);
    std::vector<std::function<void(const status&)>> actions_ STEPWELL_GUARDED_BY(mutex_);
  };

  void warn_dropped() const;
  void warn_lost(const status& why) const;
  /// Logs a failure of a write that happens later in the background.
  void log_later_failure();
  void refused(const status& why);
  void flush_if_due();
  void arm_flush_timer();
  /// Stops the acceptance of records and the flush timer. Returns false if the output is closed already.
  bool begin_close();

  const std::string name_;
  const std::shared_ptr<clock> time_;
  const seconds_value flush_secs_;
  std::shared_ptr<failure_listeners> listeners_ = std::make_shared<failure_listeners>();
  io::byte_queue queue_;

  std::atomic<bool> is_over_ = false;  // closed, or the failure was thrown; records are dropped
  std::atomic<bool> is_closed_ = false;
  std::atomic<bool> is_delivered_ = false;  // the failure was thrown
  std::atomic<bool> is_full_ = false;       // a record was dropped, because the queue was full for too long
  std::atomic<bool> is_late_ = false;       // a flush reached its deadline, and none has succeeded since
  std::shared_ptr<std::atomic<bool>> flush_due_ = std::make_shared<std::atomic<bool>>(false);

  stepwell::detail::checked_mutex mutex_;
  std::optional<io::byte_queue::pending_flush> detached_ STEPWELL_GUARDED_BY(mutex_);
  alarm timer_ STEPWELL_GUARDED_BY(mutex_);
};

}  // namespace stepwell::summary
