// SPDX-License-Identifier: Apache-2.0
//
// The scripts of the session protocol. Included by session_protocol.cpp and by the test of the protocol only.
#pragma once

#include "stepwell/base/error.hpp"
#include "stepwell/session/detail/session_protocol.hpp"

namespace stepwell::detail {

inline action work(piece what) { return {.type = action::kind::work, .what = what}; }
inline action work(piece what, step_attempt& on) { return {.type = action::kind::work, .what = what, .attempt = &on}; }
inline action wait_until(clock::time_point when) { return {.type = action::kind::wait, .until = when}; }
inline action yield() { return {.type = action::kind::yield}; }
inline action observe_cancellation() { return {.type = action::kind::observe}; }

// ---- creation

template<class Host>
script session_protocol<Host>::start() {
  co_await observe_cancellation();
  std::exception_ptr failure;
  try {
    if (state_.phase() == session_phase::created) {
      co_await begin();
      co_await observe_cancellation();
    }
    if (state_.phase() == session_phase::begun) { co_await create(); }
    if (state_.phase() != session_phase::ready) { co_await recover(); }
  } catch (const cancelled&) { throw; } catch (...) {
    failure = std::current_exception();
  }
  if (!failure) { co_return; }
  if (state_.phase() != session_phase::start_failed) { state_.to(session_phase::start_failed); }
  std::rethrow_exception(failure);
}

template<class Host>
script session_protocol<Host>::begin() {
  co_await work(piece::find_checkpoint);
  co_await work(piece::begin_hooks);
  state_.to(session_phase::begun);
}

/// Creates the session, for the first time or again. Afterwards it is `ready`, or `failed_midway` after a transient failure.
template<class Host>
script session_protocol<Host>::create() {
  const auto before = state_.phase();
  std::exception_ptr failure;
  host_.clear_interruption();
  state_.to(session_phase::creating);
  phase_on_exit interrupted(state_, before);
  try {
    co_await work(piece::make_raw);
    co_await work(piece::notify_created);
    co_await work(piece::finish_creation);
  } catch (const cancelled&) { throw; } catch (...) {
    failure = std::current_exception();
  }
  if (failure && host_.was_interrupted(failure)) { throw cancelled(); }
  if (failure) {
    host_.set_creation_failure(failure);
    phase_on_exit given_up(state_, before == session_phase::begun ? session_phase::start_failed : session_phase::lost);
    interrupted.dismiss();
    co_await work(piece::creation_failed);
    given_up.dismiss();
    state_.to(session_phase::failed_midway);
    co_return;
  }
  interrupted.dismiss();
  state_.to(session_phase::ready);
}

// ---- recovery

/// Leaves the failed session and creates it again, with backoff, as often as the policy allows. If it is cancelled, the next call continues
/// where it stopped.
template<class Host>
script session_protocol<Host>::recover() {
  if (!state_.is_recovering()) { reached_ = host_.step_reached(); }
  for (;;) {
    if (!state_.is_recovering()) {
      state_.to(session_phase::leaving);
      phase_on_exit given_up(state_, session_phase::lost);
      co_await work(piece::leave_failed);
      given_up.dismiss();
      state_.to(session_phase::backing_off);
    }
    co_await observe_cancellation();
    co_await wait_until(host_.next_attempt());
    co_await create();
    if (state_.phase() == session_phase::ready) { break; }
  }
}

// ---- steps

template<class Host>
script session_protocol<Host>::step(step_attempt& attempt) {
  bool is_first = attempt.outcome == step_outcome::not_taken;
  if (is_first) { host_.end_body(); }
  for (;;) {
    if (attempt.outcome == step_outcome::not_taken && (attempt.is_loop() || is_first)) {
      if (attempt.is_loop() && host_.should_stop()) { break; }
      co_await yield();
      co_await observe_cancellation();
      if (attempt.is_loop() && host_.should_stop()) { break; }
      co_await work(piece::attach_source, attempt);
      const bool must_recover =
          state_.is_recovering() || (attempt.is_step_fn() ? host_.is_recovery_due_for_step_fn() : host_.is_recovery_due());
      if (must_recover && attempt.is_loop()) { attempt.outcome = step_outcome::to_recover; }
      if (must_recover && !attempt.is_loop()) {
        co_await recover();
        attempt.place.attempt = 1;
      }
    }
    is_first = false;
    if (attempt.outcome == step_outcome::not_taken || attempt.outcome == step_outcome::done) { co_await attempt_once(attempt); }
    if (attempt.outcome == step_outcome::done) { co_return; }
    if (attempt.outcome == step_outcome::out_of_data) {
      const bool is_over = host_.ends_with_data();
      if (is_over) { break; }
    }
    const auto failure = host_.failure();
    std::exception_ptr given_up;
    try {
      co_await recover();
    } catch (const cancelled&) { throw; } catch (...) {
      given_up = std::current_exception();
    }
    if (given_up && !host_.ends_in_formation(given_up)) { std::rethrow_exception(given_up); }
    if (given_up) { break; }
    attempt.place = host_.place_after_recovery(reached_);
    if (host_.take_skip()) {
      if (!attempt.skip_batch()) { std::rethrow_exception(failure); }
      host_.forget_failure();
    }
    attempt.outcome = step_outcome::not_taken;
  }
  attempt.outcome = step_outcome::out_of_data;
  attempt.detach();
  if (host_.must_leave_group()) { co_await work(piece::leave_group); }
  host_.check_threads();
}

/// Does one step, unless it is done already, and processes its boundary.
template<class Host>
script session_protocol<Host>::attempt_once(step_attempt& attempt) {
  if (attempt.outcome == step_outcome::not_taken) { co_await work(piece::step, attempt); }
  if (attempt.outcome != step_outcome::done || !host_.is_boundary_due()) { co_return; }
  std::exception_ptr failure;
  try {
    co_await boundary();
  } catch (...) { failure = std::current_exception(); }
  if (!failure) { co_return; }
  const bool is_transient = host_.can_recover();
  if (!is_transient) { std::rethrow_exception(failure); }
  if (!attempt.repeats()) { std::rethrow_exception(host_.failure()); }
  attempt.outcome = step_outcome::to_recover;
}

template<class Host>
script session_protocol<Host>::boundary() {
  state_.to(session_phase::at_boundary);
  phase_on_exit failed_here(state_, session_phase::failed);
  co_await work(piece::boundary);
  failed_here.dismiss();
  state_.to(session_phase::ready);
}

template<class Host>
script session_protocol<Host>::save_now() {
  co_await observe_cancellation();
  host_.check_save();
  if (!is_allowed(state_.phase(), session_phase::saving)) {
    throw failed_precondition_error(
        "checkpoint_now was called while the session is at work, for example in a hook; a hook calls request_save of its context");
  }
  host_.end_body();
  const auto before = state_.phase();
  state_.to(session_phase::saving);
  phase_on_exit done(state_, before);
  co_await work(piece::drain);  // so that the new save can be accepted
  co_await work(piece::request_save);
  if (host_.is_boundary_due()) { co_await work(piece::boundary); }
  co_await work(piece::drain);
}

// ---- the end

template<class Host>
script session_protocol<Host>::close() {
  if (state_.is_closed()) { co_return; }
  co_await observe_cancellation();
  if (!state_.was_ready()) {
    co_await work(piece::shut_down);
    co_return;
  }
  if (!is_allowed(state_.phase(), session_phase::ending)) {
    throw failed_precondition_error("close was called while the session is at work, for example in a hook; a hook calls request_stop");
  }
  state_.to(session_phase::ending);
  co_await work(piece::end_hooks);
  state_.to(session_phase::finishing);
  phase_on_exit done(state_, session_phase::closed);
  co_await work(piece::finish_close);
}

}  // namespace stepwell::detail
