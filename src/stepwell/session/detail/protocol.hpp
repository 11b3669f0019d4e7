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

/// The questions that the protocol asks between two pieces of work. None of the answers waits.
class protocol_host {
public:
  protocol_host(const protocol_host&) = delete;
  protocol_host& operator=(const protocol_host&) = delete;

  [[nodiscard]] virtual bool should_stop() const noexcept = 0;
  /// Returns true if the session has to be created anew before its next run. @errors `failed_precondition_error` after the end.
  [[nodiscard]] virtual bool is_recovery_due() = 0;
  [[nodiscard]] virtual bool is_boundary_due() const noexcept = 0;
  /// Returns true if the end of the data ends the loop; false if a thread that feeds it has failed and a recovery is due.
  [[nodiscard]] virtual bool ends_with_data() = 0;
  /// Returns true if a recovery may overcome the last failure. @errors The failure at its root, if that is another one and recovery is off.
  [[nodiscard]] virtual bool can_recover() = 0;
  /// The last failure.
  [[nodiscard]] virtual const std::exception_ptr& failure() const noexcept = 0;
  /// Returns true if `failure` is the answer to an interruption of the creation.
  [[nodiscard]] virtual bool was_interrupted(const std::exception_ptr& failure) const noexcept = 0;
  virtual void clear_interruption() = 0;
  /// The failure of a creation, for the piece `creation_failed`.
  virtual void set_creation_failure(std::exception_ptr failure) noexcept = 0;
  /// When the next attempt of a recovery is due, after the piece `leave_failed`.
  [[nodiscard]] virtual clock::time_point next_attempt() const noexcept = 0;
  /// The last step done, also where others share the model.
  [[nodiscard]] virtual std::int64_t step_reached() const noexcept = 0;
  /// Where a loop stands after a recovery of a session that had come to step `reached`.
  [[nodiscard]] virtual loop_place place_after_recovery(std::int64_t reached) const = 0;
  /// Returns whether the hook that asked for the last rollback wants the batch left out, once.
  [[nodiscard]] virtual bool take_skip() noexcept = 0;
  /// @errors Those that forbid a save.
  virtual void check_save() const = 0;
  /// The end of a loop. @errors What a thread reported, if the session does not recover.
  virtual void check_threads() const = 0;

protected:
  protocol_host() = default;
  ~protocol_host() = default;
};

/// The scripts of one session. One at a time.
/// @lifetime `state` and `host` must outlive it, and it must outlive its scripts.
/// @threads The session's.
class protocol {
public:
  protocol(session_state& state, protocol_host& host) noexcept : state_(state), host_(host) {}
  protocol(const protocol&) = delete;
  protocol& operator=(const protocol&) = delete;

  /// Begins the hooks and creates the session, with retries. Cancelled, it continues where it was.
  [[nodiscard]] script start();
  /// Steps until `attempt` is done or its loop is over (`out_of_data`), with all boundaries and recoveries on the way. `attempt.outcome` says
  /// how far the fast path came.
  [[nodiscard]] script step(step_attempt& attempt);
  /// Processes the boundary after a run that nothing repeats.
  [[nodiscard]] script boundary();
  /// Makes a checkpoint now and waits until it is durable.
  [[nodiscard]] script save_now();
  /// Ends the hooks, makes the last save and waits for all I/O.
  [[nodiscard]] script close();

  /// Returns true if a recovery was begun, and cancelled.
  [[nodiscard]] bool is_recovering() const noexcept { return state_.phase() == session_phase::backing_off; }

  [[nodiscard]] frame_arena& frames() noexcept { return frames_; }

private:
  [[nodiscard]] script create();
  [[nodiscard]] script recover();
  [[nodiscard]] script begin();
  [[nodiscard]] script attempt_once(step_attempt& attempt);

  session_state& state_;
  protocol_host& host_;
  std::int64_t reached_ = 0;  // by the session that is recovered
  frame_arena frames_;
};

}  // namespace stepwell::detail
