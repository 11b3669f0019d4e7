// SPDX-License-Identifier: Apache-2.0
#include "stepwell/session/detail/session_life.hpp"

#include "stepwell/base/detail/failure_text.hpp"
#include "stepwell/base/error.hpp"
#include "stepwell/base/log.hpp"
#include "stepwell/hook/detail/first_failure.hpp"

namespace stepwell {

session_life::session_life(session_settings settings)
    : settings_(std::move(settings)), control_(settings_.clock ? settings_.clock : system_clock()), threads_(control_.time(), {}),
      recovery_(settings_.recover, settings_.retry, control_, threads_), search_(settings_.find_checkpoint),
      on_stop_(settings_.stop_token, stop_for_application{control_.signals()}) {
  watch_for_end();
}

session_life::~session_life() = default;

void session_life::watch_for_end() {
  if (settings_.preemption_grace && settings_.stop_on.empty()) {
    throw invalid_argument_error("preemption_grace is given, and no signal to begin with it; name one in stop_on, as SIGTERM");
  }
  control_.set_grace_of_process(settings_.preemption_grace);
  if (settings_.stop_on.empty()) { return; }
  end_signals_ =
      value_or_throw(io::signal_watch::start(settings_.stop_on, [signals = control_.signals(), time = control_.time()](int signal) {
        signals->end_process("the process was sent " + io::signal_name(signal), time->now());
      }));
}

void session_life::look_ahead() {
  search_.look_ahead([this](const std::exception_ptr& failure) { return recovery_.is_overcome(failure); });
}

bool session_life::gave_up_waiting(const std::exception_ptr& failure) const noexcept {
  if (!control_.signals()->interrupted()) { return false; }
  try {
    std::rethrow_exception(failure);
  } catch (const cancelled_error&) { return true; } catch (...) {
    return false;
  }
}

stop_reason session_life::why() const {
  auto why = control_.signals()->why();
  if (why.cause == stop_cause::none && !is_closed_ && !is_left_ && threads_.should_stop()) { why = stop_of_threads(); }
  if (why.cause == stop_cause::none) { why.cause = source_ended_ ? stop_cause::end_of_data : stop_cause::none; }
  if (why.cause == stop_cause::none && is_closed_) { why.cause = stop_cause::closed; }
  return why;
}

session_ending session_life::ending() const {
  if (failure_) { return session_ending::failed; }
  switch (why().cause) {
    case stop_cause::error:
    case stop_cause::nan: return session_ending::failed;
    case stop_cause::signal:
    case stop_cause::deadline: return session_ending::interrupted;
    default: return session_ending::finished;
  }
}

void session_life::throw_if_singular() const {
  if (!settings_.recover && !is_closed_ && threads_.should_stop()) { threads_.raise_requested_exception(); }
}

void session_life::refuse_when_over() const {
  if (is_closed_ || control_.signals()->stopped_by_hook()) { refuse_run(is_closed_); }
}

void session_life::refuse_bad_state() const {
  if (const auto& why = control_.rejected()) { throw failed_precondition_error("no checkpoint is made, for the state is bad: " + *why); }
}

void session_life::refuse_copy() const {
  if (is_closed_) { throw failed_precondition_error("a snapshot of a session that is closed; take it before, or read the model itself"); }
  refuse_bad_state();
  if (is_half_stepped_) {
    throw failed_precondition_error("no snapshot is made, for the last step failed half-way; take it after one that does not");
  }
}

void session_life::forget_failure() noexcept {
  failure_ = nullptr;
  is_half_stepped_ = false;
  control_.drop_rollback();
  control_.signals()->forget_failure();
}

bool session_life::can_recover() {
  if (is_closed_) { return false; }
  if (auto root = recovery_.root_of(failure_); root != failure_) {
    failure_ = std::move(root);
    failed_stage_ = step_stage::boundary;
    if (!recovery_.is_on()) { std::rethrow_exception(failure_); }
  }
  return recovery_.is_overcome(failure_);
}

session_metrics session_life::metrics() const {
  session_metrics all;
  all.recoveries = recovery_.total();
  all.creations = creations_;
  all.rollbacks = rollbacks_;
  control_.report(all);
  for (const auto& runner : settings_.queue_runners) {
    if (const auto depth = runner->depth()) { all.queue_depths[runner->name()] = *depth; }
  }
  return all;
}

void session_life::start_runners() {
  if (settings_.queue_runners.empty()) { return; }
  start_queue_runners(this, threads_, settings_.queue_runners);
  // A loop that waits for a queue sees a stop only when its threads do, and close the queue.
  if (!on_own_stop_) { on_own_stop_.emplace(control_.signals()->stop_token(), stop_for_threads{&threads_}); }
  if (control_.signals()->stop_requested()) { threads_.request_stop(); }
}

void session_life::join(const deadline& until) {
  if (is_left_) { return; }
  threads_.join({.stop_grace_period = until.remaining(), .ignore_live_threads = true});
}

void session_life::leave_threads() noexcept {
  threads_.request_stop();
  detail::log_failure("while leaving after an error", [&] { join(grace()); });
  is_left_ = true;
}

void session_life::overcome_or_throw(function_ref<void()> action) const {
  try {
    action();
  } catch (...) {
    const auto failure = std::current_exception();
    if (!recovery_.is_overcome(failure)) { throw; }
    log_info("leaving the session: " + detail::text_of(failure));
  }
}

stop_reason session_life::stop_of_threads() const {
  const auto failure = threads_.failure();
  if (!failure) { return {stop_cause::requested, "a thread of the session asked to stop"}; }
  return recovery_.is_overcome(failure) ? stop_reason{} : reason_of(failure, false);
}

void session_life::roll_back() {
  const auto& asked = *control_.rollback();
  if (joins_others_) {
    throw failed_precondition_error("a worker cannot roll back (" + asked.why +
                                    "): what it steps is its chief's; give the hook that asks for it to the chief, see chief_only");
  }
  ++rollbacks_;
  throw_rollback(asked);
}

void session_life::answer_rollback() {
  const auto& asked = control_.rollback();
  if (!asked) { return; }
  skip_batch_ = asked->skip_batch;
  if (asked->answer) { asked->answer(); }
}

/// A thread asked to stop. A failure that a recovery may overcome is no stop, but has the next run recover.
bool session_life::stopped_by_threads() const noexcept {
  if (is_left_) { return false; }  // it was we who stopped them
  if (!recovery_.is_overcome(threads_.failure())) { return true; }
  control_.signals()->ask_to_recover();
  return false;
}

}  // namespace stepwell
