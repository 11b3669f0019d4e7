// SPDX-License-Identifier: Apache-2.0
#include "stepwell/session/detail/session_protocol.hpp"

#include "stepwell/base/error.hpp"
#include "stepwell/session/training_session.hpp"

#include <array>
#include <cassert>
#include <cstddef>
#include <initializer_list>

namespace stepwell::detail {

namespace {

using enum session_phase;

constexpr std::size_t phase_count = static_cast<std::size_t>(abandoned) + 1;

constexpr std::uint32_t set_of(std::initializer_list<session_phase> phases) {
  std::uint32_t set = 0;
  for (const auto phase : phases) { set |= 1U << static_cast<unsigned>(phase); }
  return set;
}

struct row {
  std::string_view name;
  std::uint32_t next;  // the phases that may follow
};

// docs/design/session-protocol.md shows this table; a test compares them.
constexpr std::array<row, phase_count> table{{
    {"created", set_of({begun, start_failed, abandoned})},
    {"begun", set_of({creating, abandoned})},
    {"creating", set_of({ready, begun, backing_off, failed_midway, lost, start_failed})},
    {"ready", set_of({stepping, at_boundary, saving, failed, failed_midway, ending, abandoned})},
    {"stepping", set_of({ready, failed, failed_midway, abandoned})},
    {"at_boundary", set_of({ready, failed})},
    {"saving", set_of({ready, failed, failed_midway})},
    {"failed", set_of({ready, stepping, saving, failed, failed_midway, leaving, ending, abandoned})},
    {"failed_midway", set_of({ready, stepping, saving, failed_midway, leaving, ending, abandoned})},
    {"leaving", set_of({backing_off, lost})},
    {"backing_off", set_of({creating, ending, abandoned})},
    {"lost", set_of({leaving, start_failed, ending, abandoned})},
    {"start_failed", set_of({abandoned})},
    {"ending", set_of({finishing, abandoned})},
    {"finishing", set_of({closed})},
    {"closed", set_of({})},
    {"abandoned", set_of({})},
}};

const row& row_of(session_phase phase) noexcept { return table[static_cast<std::size_t>(phase)]; }

}  // namespace

std::string_view name_of(session_phase phase) noexcept { return row_of(phase).name; }

bool is_allowed(session_phase from, session_phase to) noexcept { return (row_of(from).next >> static_cast<unsigned>(to) & 1U) != 0; }

void session_state::to(session_phase next) noexcept {
  assert(is_allowed(phase(), next));
  if (on_transition) { on_transition(phase(), next); }
  phase_.store(next, std::memory_order_release);
  if (next == ready) { was_ready_.store(true, std::memory_order_relaxed); }
}

session_gate& moved_from_gate() {
  struct gate_of_nothing final : session_gate {
    gate_of_nothing() : session_gate(moved_from()) {}
  };
  static gate_of_nothing gate;
  return gate;
}

void throw_moved_from() { throw failed_precondition_error("this session was moved from; use the session object to which it was moved"); }

namespace {

using enum session_phase;

action work(piece what) { return {.type = action::kind::work, .what = what}; }
action work(piece what, step_attempt& on) { return {.type = action::kind::work, .what = what, .attempt = &on}; }
action wait_until(clock::time_point when) { return {.type = action::kind::wait, .until = when}; }
action yield() { return {.type = action::kind::yield}; }
action observe_cancellation() { return {.type = action::kind::observe}; }

}  // namespace

// ---- creation

script session_protocol::start() {
  co_await observe_cancellation();
  std::exception_ptr failure;
  try {
    if (state_.phase() == created) {
      co_await begin();
      co_await observe_cancellation();
    }
    if (state_.phase() == begun) { co_await create(); }
    if (state_.phase() != ready) { co_await recover(); }
  } catch (const cancelled&) { throw; } catch (...) {
    failure = std::current_exception();
  }
  if (!failure) { co_return; }
  if (state_.phase() != start_failed) { state_.to(start_failed); }
  std::rethrow_exception(failure);
}

script session_protocol::begin() {
  co_await work(piece::find_checkpoint);
  co_await work(piece::begin_hooks);
  state_.to(begun);
}

/// Creates the session, for the first time or again. Afterwards it is `ready`, or `failed_midway` after a transient failure.
script session_protocol::create() {
  const auto before = state_.phase();
  std::exception_ptr failure;
  host_.clear_interruption();
  state_.to(creating);
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
    phase_on_exit given_up(state_, before == begun ? start_failed : lost);
    interrupted.dismiss();
    co_await work(piece::creation_failed);
    given_up.dismiss();
    state_.to(failed_midway);
    co_return;
  }
  interrupted.dismiss();
  state_.to(ready);
}

// ---- recovery

/// Leaves the failed session and creates it again, with backoff, as often as the policy allows. If it is cancelled, the next call continues
/// where it stopped.
script session_protocol::recover() {
  if (!state_.is_recovering()) { reached_ = host_.step_reached(); }
  for (;;) {
    if (!state_.is_recovering()) {
      state_.to(leaving);
      phase_on_exit given_up(state_, lost);
      co_await work(piece::leave_failed);
      given_up.dismiss();
      state_.to(backing_off);
    }
    co_await observe_cancellation();
    co_await wait_until(host_.next_attempt());
    co_await create();
    if (state_.phase() == ready) { break; }
  }
}

// ---- steps

script session_protocol::step(step_attempt& attempt) {
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
script session_protocol::attempt_once(step_attempt& attempt) {
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

script session_protocol::boundary() {
  state_.to(at_boundary);
  phase_on_exit failed_here(state_, failed);
  co_await work(piece::boundary);
  failed_here.dismiss();
  state_.to(ready);
}

script session_protocol::save_now() {
  co_await observe_cancellation();
  host_.check_save();
  if (!is_allowed(state_.phase(), saving)) {
    throw failed_precondition_error(
        "checkpoint_now was called while the session is at work, for example in a hook; a hook calls request_save of its context");
  }
  host_.end_body();
  const auto before = state_.phase();
  state_.to(saving);
  phase_on_exit done(state_, before);
  co_await work(piece::drain);  // so that the new save can be accepted
  co_await work(piece::request_save);
  if (host_.is_boundary_due()) { co_await work(piece::boundary); }
  co_await work(piece::drain);
}

// ---- the end

script session_protocol::close() {
  if (state_.is_closed()) { co_return; }
  co_await observe_cancellation();
  if (!state_.was_ready()) {
    co_await work(piece::shut_down);
    co_return;
  }
  if (!is_allowed(state_.phase(), ending)) {
    throw failed_precondition_error("close was called while the session is at work, for example in a hook; a hook calls request_stop");
  }
  state_.to(ending);
  co_await work(piece::end_hooks);
  state_.to(finishing);
  phase_on_exit done(state_, closed);
  co_await work(piece::finish_close);
}

}  // namespace stepwell::detail
