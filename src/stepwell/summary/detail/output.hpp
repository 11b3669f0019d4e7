// SPDX-License-Identifier: Apache-2.0
//
// Private to summary: one file that is written behind the caller's back, whose failure is thrown once.
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

/// Those who want to hear of a failure. Shared with the queue's callback, so that it may come late.
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
  std::string name;  ///< For the log: "event writer of run".
  io::byte_queue_options queue;
  seconds_value flush_secs;  ///< The first record later than this after a flush flushes.
};

/// As `options` of a writer of any kind say.
template<class Options>
[[nodiscard]] output_options output_options_of(std::string name, const Options& options) {
  output_options made{std::move(name), {}, options.flush_secs};
  made.queue.capacity_bytes = options.max_queue_bytes;
  made.queue.threads = options.threads;
  made.queue.time = options.time;
  return made;
}

/// @threads Any.
class output {
public:
  output(std::unique_ptr<io::byte_sink> sink, output_options options);

  /// As of `byte_queue`. A failure is thrown once; after it, as after `close`, it is warned and dropped.
  template<class Frame>
  void append(std::size_t size, Frame&& frame) {
    if (auto queued = queue_.append(size, std::forward<Frame>(frame)); !queued) [[unlikely]] { return refused(queued.error()); }
    if (flush_due_->load(std::memory_order_relaxed)) [[unlikely]] { flush_if_due(); }
  }

  /// False, with a warning that something is dropped, once it is over.
  [[nodiscard]] bool accepts() const {
    if (!is_over()) [[likely]] { return true; }
    warn_dropped();
    return false;
  }
  [[nodiscard]] bool is_over() const noexcept { return is_over_.load(std::memory_order_relaxed); }

  void flush(clock::time_point until);
  void request_flush();
  /// Also after `close`, which may have left bytes to be written.
  [[nodiscard]] io::byte_queue::pending_flush start_flush() { return queue_.start_flush(); }
  void close(clock::time_point until);
  /// Starts a flush, after which the end of this output waits for nothing, unless more is added meanwhile.
  void detach();
  /// Whether that is so. The end is then `close_detached`.
  [[nodiscard]] bool is_detached() const;
  /// Like `close`, but does not wait: a failure is logged when it happens.
  void close_detached();
  /// How long its end may wait: not at all after a flush that ran into its deadline.
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

  std::atomic<bool> is_over_ = false;  // adding is: closed, or the failure was thrown
  std::atomic<bool> is_closed_ = false;
  std::atomic<bool> is_delivered_ = false;  // the failure was thrown
  std::atomic<bool> is_late_ = false;       // a flush ran into its deadline, and none has ended since

  mutable std::mutex detach_mutex_;
  std::optional<io::byte_queue::pending_flush> detached_;  // guarded by detach_mutex_

  std::mutex timer_mutex_;
  std::shared_ptr<std::atomic<bool>> flush_due_ = std::make_shared<std::atomic<bool>>(false);
  alarm timer_;
};

}  // namespace stepwell::summary
