// SPDX-License-Identifier: Apache-2.0
//
// The job that writes one snapshot on a thread of the pool, and the handling of its success or failure.
#include "stepwell/base/detail/failure_text.hpp"
#include "stepwell/base/detail/memory_shortage.hpp"
#include "stepwell/base/error.hpp"
#include "stepwell/base/log.hpp"
#include "stepwell/base/trace.hpp"
#include "stepwell/checkpoint/detail/saver_core.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

namespace stepwell {
namespace {

using detail::text_of;

/// Returns true if a failure may be transient. A full disk and an invalid call are permanent.
bool may_mend_itself(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const error& known) {
    return known.kind() != errc::resource_exhausted && known.kind() != errc::invalid_argument && known.kind() != errc::internal;
  } catch (...) { return false; }
}

template<class Callback, class... Arguments>
void call(std::recursive_mutex& mutex, const std::function<Callback>& callback, const Arguments&... arguments) {
  const std::lock_guard lock(mutex);
  const auto copy = callback;  // the callback may replace itself
  if (!copy) { return; }
  try {
    copy(arguments...);
  } catch (...) { log_error("a callback of a saver has thrown: " + text_of(std::current_exception())); }
}

}  // namespace

/// Makes the oldest queued job the current one, unless there is a current one. Returns true if the caller must post it.
/// @pre The mutex is held.
bool saver::core::start_next() {
  if (current_ || queue_.empty()) { return false; }
  current_ = std::move(queue_.front());
  queue_.pop_front();
  current_->begun = time_->now();
  return true;
}

/// Posts the current job to the pool.
/// @pre The mutex is not held, because a joined pool runs the job inside this call.
void saver::core::post_current() {
  pool_->post([self = shared_from_this()] { self->run(); });
}

void saver::core::run() {
  std::exception_ptr failure;
  std::optional<saved_checkpoint> saved;
  const auto trace = current_->taken->trace();  // trace of the session that requested this save
  try {
    const trace_scope scope(trace);
    const auto write = [this] { return directory_.write(*current_->taken, current_->before_commit); };  // valid until `finish`
    saved = detail::with_memory("could not save a checkpoint", path_, write);
  } catch (...) { failure = std::current_exception(); }
  if (saved) {
    succeed(*saved, trace);
  } else {
    fail(std::move(failure));
  }
}

/// Releases the snapshot of the current job under the mutex. So the snapshot no longer counts as held when its buffer is free
/// again, and a caller that acquires the buffer can save at once.
void saver::core::release_current() {
  std::optional<snapshot> done;
  std::function<void()> before_commit;  // destroyed after the mutex is released
  const std::lock_guard lock(mutex_);
  done.swap(current_->taken);
  before_commit.swap(current_->before_commit);
}

void saver::core::succeed(const saved_checkpoint& saved, const std::shared_ptr<trace_recorder>& trace) {
  release_current();  // before the callbacks
  call(callbacks_mutex_, on_saved_, saved);
  {
    const std::lock_guard lock(mutex_);
    latest_ = saved;
    if (current_->waiting) { current_->waiting->saved = saved; }
    changed_.notify_all();
  }
  {
    const trace_scope scope(trace);
    directory_.tidy();  // deleting large files is slow; only the next save waits for it
  }
  finish();
}

void saver::core::fail(std::exception_ptr failure) {
  if (try_again_later(failure)) { return; }
  release_current();
  give_up(std::move(failure));
  finish();
}

bool saver::core::try_again_later(const std::exception_ptr& failure) {
  const std::lock_guard lock(mutex_);
  const auto& policy = options_.on_error;
  if (is_closing_ || current_->tries >= policy.retries() || !may_mend_itself(failure)) { return false; }
  const auto wait = policy.first_wait() * (std::int64_t{1} << std::min(current_->tries, 20));
  try {
    retry_ = alarm(time_, time_->now() + wait, [weak = weak_from_this()] {
      const auto self = weak.lock();
      if (!self) { return; }
      std::unique_lock waking(self->mutex_);
      const bool is_due = std::exchange(self->waits_to_retry_, false);
      waking.unlock();
      if (is_due) { self->post_current(); }
    });
  } catch (const error& refused) {  // the alarm could not start a thread
    log_warning(std::string("the save of a checkpoint is not retried: ") + refused.what());
    return false;
  }
  waits_to_retry_ = true;  // set after the alarm: its callback blocks on the mutex
  ++current_->tries;
  log_warning(fmt::format("{}; retry {} of {} in {:.1f} s", text_of(failure), current_->tries, policy.retries(),
                          std::chrono::duration<double>(wait).count()));
  return true;
}

/// Passes the failure to its receiver. The receiver gets the only reference. Two threads must not release the exception at the same
/// time, because the thread sanitizer does not see the reference counter of the C++ library.
void saver::core::give_up(std::exception_ptr failure) {
  call(callbacks_mutex_, on_failure_, failure);
  const std::lock_guard lock(mutex_);
  if (current_->waiting) {
    current_->waiting->failure = std::move(failure);
  } else if (options_.on_error.only_warns() || failure_ || is_alone_) {
    log_warning(text_of(failure));
  } else {
    failure_ = std::move(failure);
    has_failure_ = true;
  }
}

void saver::core::finish() {
  bool starts = false;
  {
    const std::lock_guard lock(mutex_);
    current_.reset();
    starts = start_next();
  }
  if (starts) { post_current(); }
  notify_when_idle();
}

/// Writes the reported metrics, and repeats while new ones were reported. Several reports in a row cause one write.
void saver::core::write_metrics() {
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      writes_metrics_ = std::exchange(has_new_metrics_, false);
      if (!writes_metrics_) { break; }
    }
    directory_.keep_metrics();
  }
  notify_when_idle();
}

void saver::core::notify_when_idle() {
  std::vector<std::function<void()>> wakers;
  bool is_over = false;
  {
    const std::lock_guard lock(mutex_);
    if (is_idle()) { wakers.swap(idle_wakers_); }
    is_over = begins_release();
    changed_.notify_all();
  }
  if (is_over) { release(); }
  for (const auto& wake : wakers) { wake(); }
}

}  // namespace stepwell
