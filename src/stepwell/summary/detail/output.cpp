// SPDX-License-Identifier: Apache-2.0
#include "stepwell/summary/detail/output.hpp"

#include "stepwell/base/error.hpp"
#include "stepwell/base/log.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <chrono>

namespace stepwell::summary {

void failure_listeners::add(std::function<void(const status&)> action) {
  std::unique_lock lock(mutex_);
  if (!told_) {
    actions_.push_back(std::move(action));
    return;
  }
  const auto failure = *told_;
  lock.unlock();
  action(failure);
}

void failure_listeners::tell(const status& failure) {
  std::unique_lock lock(mutex_);
  told_ = failure;
  const auto actions = std::exchange(actions_, {});
  lock.unlock();
  for (const auto& action : actions) { action(failure); }
}

output::output(std::unique_ptr<io::byte_sink> sink, output_options options)
    : options_(std::move(options)), queue_(std::move(sink), options_.queue) {
  queue_.on_failure([listeners = listeners_](const status& failure) { listeners->tell(failure); });
  arm_flush_timer();
}

void output::warn_dropped() const {
  log_warning(fmt::format("the {} is closed{}: new data is dropped", options_.name, queue_.has_failed() ? " after a failed write" : ""));
}

void output::refused(const status& why) {
  if (queue_.has_failed()) {
    is_over_ = true;
    if (!is_delivered_.exchange(true)) { throw_status(why); }
  } else if (!is_over()) {
    throw_status(why);
  }
  warn_dropped();  // the failure was thrown to another caller, or another thread closed the output
}

// TensorFlow's rule: the first event later than flush_secs after a flush causes a flush. Time alone never does.
void output::flush_if_due() {
  if (options_.flush_secs.count() > 0 && !flush_due_->exchange(false)) { return; }
  queue_.request_flush();
  arm_flush_timer();
}

void output::arm_flush_timer() {
  if (!(options_.flush_secs.count() > 0)) {
    flush_due_->store(true);  // every event is due
    return;
  }
  constexpr double longest = 1e9;  // seconds; a longer time could overflow the clock's duration at about 290 years
  const std::chrono::duration<double> period(std::min(options_.flush_secs.count(), longest));
  const auto when = time()->now() + std::chrono::duration_cast<clock::duration>(period);
  const std::lock_guard lock(timer_mutex_);
  timer_ = alarm(time(), when, [due = flush_due_] { due->store(true, std::memory_order_relaxed); });
}

void output::cancel_flush_timer() {
  const std::lock_guard lock(timer_mutex_);
  timer_.cancel();
}

void output::detach() {
  auto started = start_flush();
  const std::lock_guard lock(detach_mutex_);
  detached_ = std::move(started);
}

bool output::is_detached() const {
  const std::lock_guard lock(detach_mutex_);
  return detached_ && detached_->is_all();
}

void output::close_detached() {
  if (is_closed_.exchange(true)) { return; }
  is_over_ = true;
  cancel_flush_timer();
  if (!is_delivered_.exchange(true)) {
    listeners_->add([name = options_.name](const status& failure) { log_error(fmt::format("the {}: {}", name, failure.to_string())); });
  }
  queue_.detach();
}

void output::request_flush() {
  if (!is_over()) { queue_.request_flush(); }
}

void output::flush(clock::time_point until) {
  if (is_over()) { return; }
  if (auto flushed = queue_.flush(until); !flushed) {
    is_late_ = !queue_.has_failed();
    if (is_late_) { throw_status(flushed.error()); }
    is_over_ = true;
    if (!is_delivered_.exchange(true)) { throw_status(flushed.error()); }
    return;
  }
  is_late_ = false;
}

void output::close(clock::time_point until) {
  if (is_closed_.exchange(true)) { return; }
  is_over_ = true;
  cancel_flush_timer();
  const auto closed = queue_.close(until);
  if (!closed && !is_delivered_.exchange(true)) { throw_status(closed.error()); }
}

}  // namespace stepwell::summary
