// SPDX-License-Identifier: Apache-2.0
#include "stepwell/hook/session_signals.hpp"

#include <utility>

namespace stepwell {

session_signals::session_signals() = default;

session_signals::~session_signals() = default;

void session_signals::request_stop(stop_reason why) { stop(std::move(why), stop_bit); }

void session_signals::request_stop_by_hook(stop_reason why) { stop(std::move(why), stop_bit | hook_bit); }

void session_signals::end_process(std::string why, clock::time_point now) {
  {
    const std::lock_guard lock(mutex_);
    if (!process_ends_) { process_ends_ = now; }
    asked_by_ = why;
  }
  stop({stop_cause::signal, std::move(why)}, stop_bit | save_bit | notified_bit);
}

std::optional<clock::time_point> session_signals::process_ends() const {
  const std::lock_guard lock(mutex_);
  return process_ends_;
}

void session_signals::note_plan(std::string_view plan) {
  const std::lock_guard lock(mutex_);
  if (why_.cause == stop_cause::signal) { why_.text = asked_by_ + "; " + std::string(plan); }
}

bool session_signals::wait_for_stop(clock& time, clock::time_point when) {
  std::unique_lock lock(mutex_);
  return time.wait_until(lock, stopped_, when, [this] { return stop_requested() || interrupted(); });
}

void session_signals::interrupt() {
  const auto others = [this] {
    const std::lock_guard lock(mutex_);
    bits_.fetch_or(interrupt_bit, std::memory_order_release);
    return interrupted_for_others_;
  }();
  stopped_.notify_all();
  others.request_stop();
}

void session_signals::clear_interruption() {
  const std::lock_guard lock(mutex_);
  if (interrupted_for_others_.stop_requested()) { interrupted_for_others_ = std::stop_source(); }
  bits_.fetch_and(~interrupt_bit, std::memory_order_acq_rel);
}

std::stop_token session_signals::interruption_token() const {
  const std::lock_guard lock(mutex_);
  return interrupted_for_others_.get_token();
}

stop_reason session_signals::why() const {
  const std::lock_guard lock(mutex_);
  return why_.cause != stop_cause::none ? why_ : failed_;
}

void session_signals::note_failure(stop_reason why) {
  const std::lock_guard lock(mutex_);
  failed_ = std::move(why);
}

void session_signals::forget_failure() noexcept {
  const std::lock_guard lock(mutex_);
  failed_ = {};
}

void session_signals::report_failure(std::exception_ptr failure) {
  {
    const std::lock_guard lock(mutex_);
    failures_.push_back(std::move(failure));
  }
  notify();
}

std::vector<std::exception_ptr> session_signals::take_failures() {
  const std::lock_guard lock(mutex_);
  return std::exchange(failures_, {});
}

void session_signals::stop(stop_reason why, unsigned bits) {
  {
    const std::lock_guard lock(mutex_);
    keep(std::move(why));
    bits_.fetch_or(bits, std::memory_order_release);
  }
  stopped_.notify_all();
  stopped_for_others_.request_stop();
}

void session_signals::keep(stop_reason why) {
  if (why_.cause == stop_cause::none || (why.cause == stop_cause::error && why_.cause != stop_cause::error)) { why_ = std::move(why); }
}

}  // namespace stepwell
