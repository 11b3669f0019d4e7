// SPDX-License-Identifier: Apache-2.0
//
// Private to summary: one file that is written in the background and whose failure is thrown once.
#pragma once

#include "stepwell/base/clock.hpp"
#include "stepwell/base/setting.hpp"
#include "stepwell/base/status.hpp"
#include "stepwell/io/detail/byte_queue.hpp"
#include "stepwell/io/detail/byte_sink.hpp"

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace stepwell::summary {

/// Callbacks for a failure. Shared with the callback of the queue, which may be called late.
class failure_listeners {
public:
  void add(std::function<void(const status&)> action);
  void tell(const status& failure);

private:
  std::mutex mutex_;
  std::optional<status> told_;
  std::vector<std::function<void(const status&)>> actions_;
};

struct output_options {
  std::string name;  ///< Name in log messages: "event writer of run".
  io::byte_queue_options queue;
  seconds_value flush_secs;  ///< A record later than this after the last flush causes a flush.
};

/// Returns the options of an output from the options of a writer of any kind.
template<class Options>
[[nodiscard]] output_options output_options_of(std::string name, const Options& options) {
  output_options made{std::move(name), {}, options.flush_secs};
  made.queue.capacity_bytes = options.max_queue_bytes;
  made.queue.threads = options.threads;
  made.queue.time = options.time;
  return made;
}

/// A file behind a queue, with flush timer, failure and close.
/// @threads Any.
class output {
public:
  output(std::unique_ptr<io::byte_sink> sink, output_options options);

  /// Appends a record, like `byte_queue::append`. Throws a failure once. After that, as after `close`, it drops the record with a
  /// warning.
  template<class Frame>
  void append(std::size_t size, Frame&& frame) {
    if (auto queued = queue_.append(size, std::forward<Frame>(frame)); !queued) [[unlikely]] { return refused(queued.error()); }
    if (flush_due_->load(std::memory_order_relaxed)) [[unlikely]] { flush_if_due(); }
  }

  /// Returns true if records are accepted. Otherwise warns that a record is dropped and returns false.
  [[nodiscard]] bool accepts() const {
    if (!is_over()) [[likely]] { return true; }
    warn_dropped();
    return false;
  }
  [[nodiscard]] bool is_over() const noexcept { return is_over_.load(std::memory_order_relaxed); }

  void flush(clock::time_point until);
  void request_flush();
  /// Starts a flush. May be called after `close`, which may leave bytes to be written.
  [[nodiscard]] io::byte_queue::pending_flush start_flush() { return queue_.start_flush(); }
  void close(clock::time_point until);
  /// Starts a flush. After that the owner's destructor does not wait, unless more is added in the meantime.
  void detach();
  /// Returns true if the destructor need not wait. It then calls `close_detached`.
  [[nodiscard]] bool is_detached() const;
  /// Like `close`, but does not wait. A failure is logged when it happens.
  void close_detached();
  /// Returns the deadline for `close` in the destructor: now after a flush that reached its deadline, otherwise none.
  [[nodiscard]] clock::time_point last_deadline() const { return is_late_ ? options_.queue.time->now() : io::byte_queue::forever; }

  [[nodiscard]] const io::byte_queue& queue() const noexcept { return queue_; }
  [[nodiscard]] failure_listeners& listeners() noexcept { return *listeners_; }
  [[nodiscard]] const std::shared_ptr<clock>& time() const noexcept { return options_.queue.time; }

private:
  void warn_dropped() const;
  void refused(const status& why);
  void flush_if_due();
  void arm_flush_timer();
  void cancel_flush_timer();

  const output_options options_;
  std::shared_ptr<failure_listeners> listeners_ = std::make_shared<failure_listeners>();
  io::byte_queue queue_;

  std::atomic<bool> is_over_ = false;  // closed, or the failure was thrown; records are dropped
  std::atomic<bool> is_closed_ = false;
  std::atomic<bool> is_delivered_ = false;  // the failure was thrown
  std::atomic<bool> is_late_ = false;       // a flush reached its deadline, and none has succeeded since

  mutable std::mutex detach_mutex_;
  std::optional<io::byte_queue::pending_flush> detached_;  // guarded by detach_mutex_

  std::mutex timer_mutex_;
  std::shared_ptr<std::atomic<bool>> flush_due_ = std::make_shared<std::atomic<bool>>(false);
  alarm timer_;
};

}  // namespace stepwell::summary
