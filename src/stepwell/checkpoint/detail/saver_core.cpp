// SPDX-License-Identifier: Apache-2.0
//
// Functions of a saver that its user calls. The job on the pool is in saver_job.cpp.
#include "stepwell/checkpoint/detail/saver_core.hpp"

#include "stepwell/base/detail/refuse_negative.hpp"
#include "stepwell/base/error.hpp"
#include "stepwell/base/log.hpp"
#include "stepwell/checkpoint/detail/unsynced_file_system.hpp"

#include <fmt/format.h>
#include <utility>

namespace stepwell {
namespace {

saver_options completed(saver_options options) {
  check_saver_options(options);
  if (!options.file_system) { options.file_system = io::posix_file_system(); }
  if (!options.pool) { options.pool = io::pool::shared(); }
  if (!options.clock) { options.clock = system_clock(); }
  return options;
}

std::shared_ptr<io::file_system> files_for(const saver_options& options) {
  if (options.sync) { return options.file_system; }
  return std::make_shared<detail::unsynced_file_system>(options.file_system);
}

}  // namespace

void check_saver_options(const saver_options& options) {
  if (options.basename.empty() || options.basename.find('/') != std::string::npos) {
    throw invalid_argument_error("the basename of a saver must be a file name without directories");
  }
  if (options.max_staged == 0 || options.shards < 1) {
    throw invalid_argument_error("max_staged and shards of a saver must be at least 1");
  }
  detail::refuse_negative("max_to_keep", options.max_to_keep);
  detail::refuse_negative("keep_every_n_hours", options.keep_every_n_hours);
  detail::refuse_negative("on_error.retries", options.on_error.retries());
}

saver::core::core(std::string directory, saver_options options)
    : path_(std::move(directory)), options_(completed(std::move(options))), time_(options_.clock), pool_(options_.pool),
      directory_(path_, options_, files_for(options_), time_) {}

std::optional<snapshot_pool::buffer> saver::core::acquire(snapshot_pool& pool, bool may_wait) {
  if (auto free = pool.try_acquire()) { return free; }
  if (options_.when_busy == when_busy::skip) { return std::nullopt; }
  if (options_.when_busy == when_busy::coalesce) {
    std::unique_lock lock(mutex_);
    if (auto taken = take_waiting()) {
      dropped_one_ = true;
      lock.unlock();
      changed_.notify_all();
      return std::move(*taken).release();
    }
  }
  return may_wait ? std::optional(pool.acquire()) : std::nullopt;
}

/// Removes and returns the newest queued snapshot, or nothing if the queue is empty or a caller waits for that save.
/// @pre The mutex is held.
std::optional<snapshot> saver::core::take_waiting() {
  if (queue_.empty() || queue_.back().waiting) { return std::nullopt; }
  auto taken = std::move(queue_.back().taken);
  queue_.pop_back();
  return taken;
}

save_outcome saver::core::save(snapshot taken, std::function<void()> before_commit) {
  throw_if_failed();
  refuse_when_closed();
  std::optional<snapshot> replaced;  // destroyed after the mutex is released: returning its buffer may call a waiting callback
  std::unique_lock lock(mutex_);
  auto outcome = std::exchange(dropped_one_, false) ? save_outcome::coalesced : save_outcome::queued;
  if (is_full()) {
    if (options_.when_busy == when_busy::skip) { return save_outcome::skipped; }
    if (options_.when_busy == when_busy::coalesce) { replaced = take_waiting(); }
    if (replaced) { outcome = save_outcome::coalesced; }
    changed_.wait(lock, [this] { return !is_full(); });
  }
  queue_.push_back({.taken = std::move(taken), .before_commit = std::move(before_commit)});
  const bool starts = start_next();
  lock.unlock();
  if (starts) { post_current(); }
  return outcome;
}

saved_checkpoint saver::core::save_and_wait(snapshot taken) {
  refuse_when_closed();
  const auto waiting = std::make_shared<ticket>();
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !is_full(); });
  queue_.push_back({.taken = std::move(taken), .waiting = waiting});
  if (start_next()) {
    lock.unlock();
    post_current();
    lock.lock();
  }
  changed_.wait(lock, [&] { return waiting->saved || waiting->failure; });
  if (waiting->saved) { return *waiting->saved; }
  const auto failure = std::exchange(waiting->failure, nullptr);
  lock.unlock();
  std::rethrow_exception(failure);
}

void saver::core::refuse_when_closed() const {
  const std::lock_guard lock(mutex_);
  if (is_closing_) { throw failed_precondition_error("could not save: this saver is closed; create a new one", path_); }
}

void saver::core::on_saved(std::function<void(const saved_checkpoint&)> callback) {
  const std::lock_guard lock(callbacks_mutex_);
  on_saved_ = std::move(callback);
}

void saver::core::on_failure(std::function<void(std::exception_ptr)> callback) {
  const std::lock_guard lock(callbacks_mutex_);
  on_failure_ = std::move(callback);
}

void saver::core::throw_if_failed() {
  if (!has_failure()) { return; }
  std::unique_lock lock(mutex_);
  has_failure_ = false;
  auto failure = std::exchange(failure_, nullptr);
  lock.unlock();
  if (failure) { std::rethrow_exception(std::move(failure)); }
}

void saver::core::report_metric(std::int64_t step, double value) {
  {
    const std::lock_guard lock(mutex_);
    if (is_closing_) {
      throw failed_precondition_error("could not report a metric: this saver is closed; report metrics before it is closed", path_);
    }
    directory_.report_metric(step, value);
    has_metrics_ = true;
    has_new_metrics_ = true;
    if (std::exchange(writes_metrics_, true)) { return; }
  }
  pool_->post([self = shared_from_this()] { self->write_metrics(); });
}

bool saver::core::busy() const {
  const std::lock_guard lock(mutex_);
  return !is_idle();
}

save_backlog saver::core::backlog() const {
  const std::lock_guard lock(mutex_);
  save_backlog found;
  if (current_ && current_->taken) { found = {current_->taken->size_bytes(), time_->now() - current_->begun, 0}; }
  for (const auto& waiting : queue_) { found.waiting_bytes += waiting.taken->size_bytes(); }
  return found;
}

void saver::core::drain(std::optional<clock_type::time_point> deadline) {
  std::unique_lock lock(mutex_);
  if (!deadline) {
    changed_.wait(lock, [this] { return is_idle(); });
  } else if (!time_->wait_until(lock, changed_, *deadline, [this] { return is_idle(); })) {
    is_late_ = !waits_to_retry_;  // a scheduled retry does not hang
    throw deadline_exceeded_error("checkpoints are still being written; the disk is slow or no longer available", path_);
  }
  is_late_ = false;
  lock.unlock();
  throw_if_failed();
}

void saver::core::when_idle(std::function<void()> wake) {
  {
    const std::lock_guard lock(mutex_);
    if (!is_idle()) {
      idle_wakers_.push_back(std::move(wake));
      return;
    }
  }
  wake();
}

void saver::core::detach_waiter(std::unique_lock<std::mutex> lock) noexcept {
  is_alone_ = true;
  lock.unlock();
  on_saved(nullptr);
  on_failure(nullptr);
  log_error(path_ + ": a checkpoint is still being written in the background; the directory stays locked until the write ends");
}

std::optional<saved_checkpoint> saver::core::latest() const {
  const std::lock_guard lock(mutex_);
  return latest_;
}

/// Warns if either `keep_best` is set and no metric was reported, or the reverse. One has an effect only together with the other.
void saver::core::warn_of_unused_metrics() const noexcept {
  if (options_.keep_best && !has_metrics_ && latest()) {
    log_warning(
        fmt::format("{}: keep_best is set for \"{}\", but no value was reported, so it keeps no checkpoint; call "
                    "report_metric(step, value) of the saver after each evaluation",
                    path_, options_.keep_best->metric));
  } else if (!options_.keep_best && has_metrics_) {
    log_warning(path_ + ": values were reported by report_metric, but saver_options::keep_best is not set, so the values have no effect");
  }
}

void saver::core::close() noexcept {
  std::unique_lock lock(mutex_);
  if (std::exchange(is_closing_, true)) { return; }
  if (std::exchange(waits_to_retry_, false)) {
    lock.unlock();
    post_current();
    lock.lock();
  }
  if (is_late_ && !is_idle()) { return detach_waiter(std::move(lock)); }
  changed_.wait(lock, [this] { return is_idle(); });
  lock.unlock();
  release();
}

void saver::core::detach() noexcept {
  std::unique_lock lock(mutex_);
  if (std::exchange(is_closing_, true)) { return; }
  is_alone_ = true;
  const bool is_over = begins_release();
  const bool retries = std::exchange(waits_to_retry_, false);
  lock.unlock();
  on_saved(nullptr);
  on_failure(nullptr);
  if (retries) { post_current(); }
  if (is_over) { return release(); }
  log_info(path_ + ": a checkpoint is still being written; the directory is released when the write ends");
}

void saver::core::hold_until_released(std::shared_ptr<void> hold) {
  const std::lock_guard lock(mutex_);
  if (!is_released_) { hold_.swap(hold); }
}

/// Returns true once, for the call that must release the directory: the saver was closed without waiting and is idle.
/// @pre The mutex is held.
bool saver::core::begins_release() noexcept { return is_alone_ && is_idle() && !std::exchange(is_releasing_, true); }

/// Finishes closing: releases the directory and logs an undelivered failure.
/// @pre The saver is idle and closing.
void saver::core::release() noexcept {
  retry_.cancel();
  warn_of_unused_metrics();
  directory_.close();
  std::unique_lock lock(mutex_);
  is_released_ = true;
  const auto hold = std::exchange(hold_, nullptr);  // destroyed after the mutex is released
  const auto failure = std::exchange(failure_, nullptr);
  lock.unlock();
  if (!failure) { return; }
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& undelivered) { log_error(undelivered.what()); }
}

}  // namespace stepwell
