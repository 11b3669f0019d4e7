// SPDX-License-Identifier: Apache-2.0
#include "stepwell/summary/detail/output.hpp"

#include "stepwell/base/detail/locks.hpp"
#include "stepwell/base/error.hpp"
#include "stepwell/base/log.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <chrono>
#include <exception>

namespace stepwell::summary {

void check_limits(std::size_t max_queue_bytes, seconds_value flush_secs) {
  if (max_queue_bytes == 0) { throw invalid_argument_error("max_queue_bytes is 0; the queue of a writer needs space, give 1 or more"); }
  stepwell::detail::refuse_negative("flush_secs", flush_secs);
}

void output::failure_listeners::add(std::function<void(const status&)> action) {
  stepwell::detail::mutex_lock lock(mutex_);
  if (!happened_) { return actions_.push_back(std::move(action)); }
  const auto failure = *happened_;
  lock.unlock();
  action(failure);
}

void output::failure_listeners::notify(const status& failure) {
  stepwell::detail::mutex_lock lock(mutex_);
  happened_ = failure;
  const auto actions = std::exchange(actions_, {});
  lock.unlock();
  for (const auto& action : actions) { action(failure); }
}

void output::warn_dropped() const {
  log_warning(fmt::format("the {} is closed{}: new data is dropped", name_, queue_.has_failed() ? " after a failed write" : ""));
}

void output::warn_lost(const status& why) const {
  if (!queue_.has_failed()) { log_warning(fmt::format("the {}: {}; a line is lost", name_, why.message)); }
}

bool output::wait_for_space(std::size_t size) {
  const auto waited = queue_.wait_for_space(size);
  if (!waited) { refused(waited.error()); }
  return waited.ok();
}

void output::refused(const status& why) {
  if (const auto failed = queue_.failure()) {  // tested first, because a disk can time out, too
    is_over_ = true;
    if (!is_delivered_.exchange(true)) { throw_status(*failed); }
  } else if (why.code == errc::deadline_exceeded) {
    if (!is_full_.exchange(true)) { log_warning(fmt::format("the {}: {}; records are dropped", name_, why.message)); }
    return;
  } else if (!is_over()) {
    throw_status(why);
  }
  warn_dropped();  // the failure was thrown to another caller, or another thread closed the output
}

// TensorFlow's rule: the first event later than flush_secs after a flush causes a flush. Time alone never does.
void output::flush_if_due() {
  if (flush_secs_.count() > 0 && !flush_due_->exchange(false)) { return; }
  queue_.request_flush();
  arm_flush_timer();
}

void output::arm_flush_timer() {
  if (!(flush_secs_.count() > 0)) {
    flush_due_->store(true);  // every event is due
    return;
  }
  constexpr double longest = 1e9;  // seconds; a longer time could overflow the clock's duration at about 290 years
  const std::chrono::duration<double> period(std::min(flush_secs_.count(), longest));
  const auto when = time_->now() + std::chrono::duration_cast<clock::duration>(period);
  const stepwell::detail::mutex_lock lock(mutex_);
  timer_ = alarm(time_, when, [due = flush_due_] { due->store(true, std::memory_order_relaxed); });
}

bool output::begin_close() {
  if (is_closed_.exchange(true)) { return false; }
  is_over_ = true;
  const stepwell::detail::mutex_lock lock(mutex_);
  timer_.cancel();
  return true;
}

void output::detach() {
  auto started = start_flush();
  const stepwell::detail::mutex_lock lock(mutex_);
  detached_ = std::move(started);
}

void output::end(const char* kind, const std::string& path, const std::function<void(clock::time_point)>& close_writer) {
  try {
    stepwell::detail::mutex_lock lock(mutex_);
    const bool is_detached = detached_ && detached_->is_all();
    lock.unlock();
    if (!is_detached) { return close_writer(is_late_ ? time_->now() : io::byte_queue::forever); }
    if (!begin_close()) { return; }
    if (!is_delivered_.exchange(true)) { log_later_failure(); }
    queue_.detach();
  } catch (const std::exception& failure) { log_error(fmt::format("closing {}{}: {}", kind, path, failure.what())); }
}

void output::log_later_failure() {
  on_failure([name = name_](const status& failure) { log_error(fmt::format("the {}: {}", name, failure.to_string())); });
}

void output::request_flush() {
  if (!is_over()) { queue_.request_flush(); }
}

void output::flush(clock::time_point until) {
  if (is_over()) { return; }
  if (auto flushed = queue_.flush(until); !flushed) {
    const auto failed = queue_.failure();
    is_late_ = !failed;
    if (!failed) { throw_status(flushed.error()); }
    is_over_ = true;
    if (!is_delivered_.exchange(true)) { throw_status(*failed); }
    return;
  }
  is_late_ = false;
}

void output::close(clock::time_point until) {
  if (!begin_close()) { return; }
  const auto closed = queue_.close(until);
  if (closed || is_delivered_.exchange(true)) { return; }
  const auto failed = queue_.failure();
  const bool is_thrown_now = failed && failed->message == closed.error().message;
  if (closed.error().code == errc::deadline_exceeded && !is_thrown_now) { log_later_failure(); }  // no later call throws it
  throw_status(closed.error());
}

}  // namespace stepwell::summary
