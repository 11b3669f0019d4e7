// SPDX-License-Identifier: Apache-2.0
//
// The session protocol: starting, stepping, recovering, saving and closing, each written once. The blocking and the asynchronous session
// are two drivers of these scripts. @see docs/design/session-protocol.md
#pragma once

#include "stepwell/base/clock.hpp"
#include "stepwell/session/detail/script.hpp"
#include "stepwell/session/detail/session_state.hpp"
#include "stepwell/session/detail/step_attempt.hpp"

#include <cstdint>
#include <exception>

namespace stepwell::detail {

/// The queries that the protocol makes between two pieces of work. None of them blocks.
class protocol_host {
public:
  protocol_host(const protocol_host&) = delete;
  protocol_host& operator=(const protocol_host&) = delete;

  [[nodiscard]] virtual bool should_stop() const noexcept = 0;
  /// Returns true if the session has to be created again before its next run. @errors `failed_precondition_error` after the end.
  [[nodiscard]] virtual bool is_recovery_due() = 0;
  [[nodiscard]] virtual bool is_boundary_due() const noexcept = 0;
  /// Returns true if the end of the data ends the loop; false if a thread that feeds it has failed and a recovery is due.
  [[nodiscard]] virtual bool ends_with_data() = 0;
  /// Returns true if a recovery may overcome the last failure. @errors The failure of a thread that caused it, if recovery is off.
  [[nodiscard]] virtual bool can_recover() = 0;
  /// Returns the last failure.
  [[nodiscard]] virtual const std::exception_ptr& failure() const noexcept = 0;
  /// Returns true if `failure` is the result of an interruption of the creation.
  [[nodiscard]] virtual bool was_interrupted(const std::exception_ptr& failure) const noexcept = 0;
  virtual void clear_interruption() = 0;
  /// Stores the failure of a creation, for the piece `creation_failed`.
  virtual void set_creation_failure(std::exception_ptr failure) noexcept = 0;
  /// Returns the time at which the next attempt of a recovery is due. Valid after the piece `leave_failed`.
  [[nodiscard]] virtual clock::time_point next_attempt() const noexcept = 0;
  /// Returns the last step done, also if other sessions share the model.
  [[nodiscard]] virtual std::int64_t step_reached() const noexcept = 0;
  /// Returns the position of a loop after a recovery of a session that had reached step `reached`.
  [[nodiscard]] virtual loop_place place_after_recovery(std::int64_t reached) const = 0;
  /// Returns true if the batch of the last rollback is to be skipped, as its hook requested. Further calls return false.
  [[nodiscard]] virtual bool take_skip() noexcept = 0;
  /// Checks that a save is allowed. @errors `failed_precondition_error` if it is not.
  virtual void check_save() const = 0;
  /// Called at the end of a loop. @errors A failure that a thread reported, if the session does not recover.
  virtual void check_threads() const = 0;

protected:
  protocol_host() = default;
  ~protocol_host() = default;
};

/// The scripts of one session. One script runs at a time.
/// @lifetime `state` and `host` must outlive it, and it must outlive its scripts.
/// @threads The session's thread.
class protocol {
public:
  protocol(session_state& state, protocol_host& host) noexcept : state_(state), host_(host) {}
  protocol(const protocol&) = delete;
  protocol& operator=(const protocol&) = delete;

  /// Calls `begin` of the hooks and creates the session, with retries. If it is cancelled, the next call continues where it stopped.
  [[nodiscard]] script start();
  /// Executes steps until `attempt` is done or its loop is over (`out_of_data`), including boundaries and recoveries. `attempt.outcome`
  /// must be set to the result of the fast path.
  [[nodiscard]] script step(step_attempt& attempt);
  /// Processes the boundary after a run that is not repeated.
  [[nodiscard]] script boundary();
  /// Makes a checkpoint now and waits until it is durable.
  [[nodiscard]] script save_now();
  /// Calls `end` of the hooks, makes the last save, and waits for all I/O.
  [[nodiscard]] script close();

  /// Returns true if a recovery has begun and was cancelled, or waits for its next attempt.
  [[nodiscard]] bool is_recovering() const noexcept { return state_.phase() == session_phase::backing_off; }

  [[nodiscard]] frame_arena& frames() noexcept { return frames_; }

private:
  [[nodiscard]] script create();
  [[nodiscard]] script recover();
  [[nodiscard]] script begin();
  [[nodiscard]] script attempt_once(step_attempt& attempt);

  session_state& state_;
  protocol_host& host_;
  std::int64_t reached_ = 0;  // the step reached before the recovery
  frame_arena frames_;
};

}  // namespace stepwell::detail
