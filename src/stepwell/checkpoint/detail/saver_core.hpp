// SPDX-License-Identifier: Apache-2.0
//
// Internal: the queue of a saver. One job at a time runs on the pool and writes one snapshot.
#pragma once

#include "stepwell/base/clock.hpp"
#include "stepwell/checkpoint/detail/checkpoint_directory.hpp"
#include "stepwell/checkpoint/saver.hpp"
#include "stepwell/io/pool.hpp"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace stepwell {

/// The implementation of `saver`. The public functions are documented in saver.hpp.
class saver::core : public std::enable_shared_from_this<saver::core> {
public:
  core(std::string directory, saver_options options);

  [[nodiscard]] std::optional<snapshot_pool::buffer> acquire(snapshot_pool& pool, bool may_wait);
  save_outcome save(snapshot taken, std::function<void()> before_commit);
  saved_checkpoint save_and_wait(snapshot taken);

  void on_saved(std::function<void(const saved_checkpoint&)> callback);
  void on_failure(std::function<void(std::exception_ptr)> callback);
  [[nodiscard]] bool has_failure() const noexcept { return has_failure_.load(std::memory_order_relaxed); }
  void throw_if_failed();
  [[nodiscard]] bool busy() const;
  [[nodiscard]] save_backlog backlog() const;
  void drain(std::optional<clock_type::time_point> deadline);
  void when_idle(std::function<void()> wake);
  [[nodiscard]] std::optional<saved_checkpoint> latest() const;
  void report_metric(std::int64_t step, double value);

  void close() noexcept;
  void detach() noexcept;
  void hold_until_released(std::shared_ptr<void> hold);

  [[nodiscard]] detail::checkpoint_directory& directory() noexcept { return directory_; }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] const saver_options& options() const noexcept { return options_; }

private:
  /// Result of one save for a caller that waits for it.
  struct ticket {
    std::optional<saved_checkpoint> saved;
    std::exception_ptr failure;
  };
  struct job {
    std::optional<snapshot> taken;
    std::function<void()> before_commit = nullptr;
    std::shared_ptr<ticket> waiting = nullptr;
    int tries = 0;
    clock_type::time_point begun = {};  // start of writing; set when the job becomes the current one
  };

  [[nodiscard]] bool is_idle() const noexcept { return !current_ && queue_.empty() && !writes_metrics_; }
  [[nodiscard]] bool is_full() const noexcept { return queue_.size() + (current_ && current_->taken ? 1 : 0) >= options_.max_staged; }
  [[nodiscard]] std::optional<snapshot> take_waiting();
  void refuse_when_closed() const;
  [[nodiscard]] bool start_next();
  void post_current();

  void run();
  void release_current();
  void warn_of_unused_metrics() const noexcept;
  void detach_waiter(std::unique_lock<std::mutex> lock) noexcept;
  [[nodiscard]] bool begins_release() noexcept;
  void release() noexcept;
  void succeed(const saved_checkpoint& saved, const std::shared_ptr<trace_recorder>& trace);
  void fail(std::exception_ptr failure);
  bool try_again_later(const std::exception_ptr& failure);
  void give_up(std::exception_ptr failure);
  void finish();
  void write_metrics();
  void notify_when_idle();

  std::string path_;
  saver_options options_;
  std::shared_ptr<clock_type> time_;
  std::shared_ptr<io::pool> pool_;
  detail::checkpoint_directory directory_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<job> queue_;         // queued jobs, oldest first
  std::optional<job> current_;    // the job being written or about to be written
  bool dropped_one_ = false;      // `acquire` took the buffer of a queued snapshot
  bool writes_metrics_ = false;   // a task that writes metrics is posted and has not ended
  bool has_new_metrics_ = false;  // metrics were reported since that task began to write
  bool waits_to_retry_ = false;
  bool is_closing_ = false;
  bool is_late_ = false;   // a drain reached its deadline
  bool is_alone_ = false;  // closed without waiting: releases the directory itself when idle
  bool is_releasing_ = false;
  bool is_released_ = false;
  std::shared_ptr<void> hold_;  // kept until the directory is released
  alarm retry_;
  std::exception_ptr failure_;  // the first undelivered failure
  std::atomic<bool> has_failure_ = false;
  std::atomic<bool> has_metrics_ = false;  // metrics were reported to this saver
  std::optional<saved_checkpoint> latest_;
  std::vector<std::function<void()>> idle_wakers_;

  std::recursive_mutex callbacks_mutex_;  // held while a callback runs; recursive, because it may replace itself
  std::function<void(const saved_checkpoint&)> on_saved_;
  std::function<void(std::exception_ptr)> on_failure_;
};

}  // namespace stepwell
