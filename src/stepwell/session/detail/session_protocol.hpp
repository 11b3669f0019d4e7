// SPDX-License-Identifier: Apache-2.0
//
// The session protocol: starting, stepping, recovering, saving and closing, each written once. The blocking and the asynchronous session
// are two drivers of these scripts. @see docs/design/session-protocol.md
#pragma once

#include "stepwell/base/clock.hpp"
#include "stepwell/session/detail/script_coroutine.hpp"

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <string_view>

namespace stepwell::detail {

/// The phases of a session, in the order in which a session that fails and recovers passes them. From `lost` on, a loop ends. From `ending`
/// on, the session is closed for callers.
enum class session_phase : std::uint8_t {
  created,        ///< Constructed. No hook has begun.
  begun,          ///< Hooks have begun. There is no raw session yet.
  creating,       ///< The raw session is made and restored, and hooks are notified.
  ready,          ///< Between two steps. The state is consistent.
  stepping,       ///< A run is under way.
  at_boundary,    ///< Requests of hooks are processed, after a step.
  saving,         ///< A checkpoint is made because a caller asked for it.
  failed,         ///< The last operation failed between two steps. The state is consistent.
  failed_midway,  ///< A run failed, in a hook or in the step, or a creation failed. The state may be inconsistent.
  leaving,        ///< Recovery: threads are joined and saves in flight finish.
  backing_off,    ///< Recovery: waits until the next attempt is due.
  lost,           ///< Recovery has failed. A later run tries again.
  start_failed,   ///< The first creation has failed. The session is of no further use.
  ending,         ///< Closing: `end` of the hooks is called.
  finishing,      ///< Closing: the last save is made, threads are joined, and I/O is completed.
  closed,         ///< The session was closed, with or without a failure.
  abandoned,      ///< The session was left without calling `end` of the hooks.
};

[[nodiscard]] std::string_view name_of(session_phase phase) noexcept;

/// Returns true if a session may go from `from` to `to`. @see docs/design/session-protocol.md
[[nodiscard]] bool is_allowed(session_phase from, session_phase to) noexcept;

/// The phase of one session.
/// @threads Written by the session's thread, read by any.
class session_state {
public:
  [[nodiscard]] session_phase phase() const noexcept { return phase_.load(std::memory_order_acquire); }

  /// Goes to `next`. In a build with assertions a transition that is not allowed ends the program.
  void to(session_phase next) noexcept;
  /// Like `to`, for the transitions within a step: from `ready`, `failed` or `failed_midway` to `stepping`, and from there to `ready`.
  /// Inlined, without the check.
  void to_within_step(session_phase next) noexcept { phase_.store(next, std::memory_order_release); }

  /// Returns true if the session has been `ready` at least once.
  [[nodiscard]] bool was_ready() const noexcept { return was_ready_.load(std::memory_order_relaxed); }
  /// Returns true if a loop must end: the session is lost, could not be started, or is closed.
  [[nodiscard]] bool is_over() const noexcept { return phase() >= session_phase::lost; }
  [[nodiscard]] bool is_closed() const noexcept { return phase() >= session_phase::ending; }
  /// Returns true if a recovery has begun and was cancelled, or waits for its next attempt.
  [[nodiscard]] bool is_recovering() const noexcept { return phase() == session_phase::backing_off; }
  [[nodiscard]] bool has_failed() const noexcept {
    const auto now = phase();
    return now == session_phase::failed || now == session_phase::failed_midway;
  }

  /// Called before each transition, except those within a step. For tests.
  std::function<void(session_phase from, session_phase to)> on_transition = nullptr;

private:
  std::atomic<session_phase> phase_ = session_phase::created;
  std::atomic<bool> was_ready_ = false;
};

/// A guard that puts a session into another phase when its scope is left early: by an exception, or because the script that contains the
/// guard is destroyed.
class phase_on_exit {
public:
  phase_on_exit(session_state& state, session_phase phase) noexcept : state_(&state), phase_(phase) {}
  phase_on_exit(const phase_on_exit&) = delete;
  phase_on_exit& operator=(const phase_on_exit&) = delete;
  ~phase_on_exit() {
    if (state_ != nullptr) { state_->to(phase_); }
  }
  void dismiss() noexcept { state_ = nullptr; }

private:
  session_state* state_;
  session_phase phase_;
};

/// The progress of a step. `not_taken`: the step has to be attempted. `done`: the step is complete except for its boundary.
enum class step_outcome : std::uint8_t { not_taken, done, out_of_data, to_recover };

/// The position of a loop: the number of the next attempt, and the step that was reached before a recovery.
struct loop_place {
  int attempt = 1;
  std::optional<std::int64_t> rolled_back_from = std::nullopt;
};

/// A step of a loop (`is_loop`), a step function (`is_step_fn`), or a single run, which may be attempted several times.
class step_attempt {
public:
  enum class kind { loop, run, step_fn };
  /// Creates an attempt. `repeats`: it may be attempted again with the same arguments.
  step_attempt(kind what, bool repeats) noexcept : what_(what), repeats_(repeats) {}
  step_attempt(const step_attempt&) = delete;
  step_attempt& operator=(const step_attempt&) = delete;

  [[nodiscard]] bool is_loop() const noexcept { return what_ == kind::loop; }
  [[nodiscard]] bool is_step_fn() const noexcept { return what_ == kind::step_fn; }
  [[nodiscard]] bool repeats() const noexcept { return repeats_; }

  /// Registers the source. Does nothing if it is registered. @errors Exceptions of seeking the source.
  virtual void attach() {}
  /// Does one step, without its boundary, and sets `outcome`.
  /// @errors Failures that are not the end of the data and cannot be recovered from.
  virtual void take() = 0;
  /// Marks the current batch to be skipped when it is reached again. Returns false if that is not possible.
  virtual bool skip_batch() { return false; }
  /// Releases the source, at the end of the loop.
  virtual void detach() noexcept {}

  loop_place place;
  step_outcome outcome = step_outcome::not_taken;

protected:
  ~step_attempt() = default;

private:
  kind what_;
  bool repeats_;
};

/// The base of every session, with its phase. A session object that was moved from refers to `moved_from_gate()`, whose phase is that of a
/// session that is over: the check that a step makes of the phase then also finds a session that was moved from, at no cost.
class session_gate {
public:
  session_gate(const session_gate&) = delete;
  session_gate& operator=(const session_gate&) = delete;
  virtual ~session_gate() = default;

  [[nodiscard]] bool is_moved_from() const noexcept { return is_moved_from_; }
  [[nodiscard]] const session_state& state() const noexcept { return state_; }
  [[nodiscard]] bool is_closed() const noexcept { return state_.is_closed(); }

protected:
  struct moved_from {};
  session_gate() = default;
  explicit session_gate(moved_from /*tag*/) : is_moved_from_(true) { state_.to(session_phase::abandoned); }

  session_state state_;

private:
  const bool is_moved_from_ = false;
};
[[nodiscard]] session_gate& moved_from_gate();
/// Throws `failed_precondition_error`: the session was moved from.
[[noreturn]] void throw_moved_from();

/// The queries that the protocol makes between two pieces of work. None of them blocks.
class protocol_host : public session_gate {
public:
  ~protocol_host() override = default;
  [[nodiscard]] virtual bool should_stop() const noexcept = 0;
  /// Called when an operation begins: the body of the loop has handled the last step. Works commit the states that they hold until then.
  virtual void end_body() noexcept = 0;
  /// Returns true if the session has to be created again before its next run. @errors `failed_precondition_error` after the end.
  [[nodiscard]] virtual bool is_recovery_due() = 0;
  /// Like `is_recovery_due`, before a step function, which may be called after a stop by a hook.
  /// @errors `failed_precondition_error` if the session is closed.
  [[nodiscard]] virtual bool is_recovery_due_for_step_fn() = 0;
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
  /// Clears the last failure: either it was not a failure, or the loop continues after it.
  virtual void forget_failure() noexcept = 0;
  /// Checks that a save is allowed. @errors `failed_precondition_error` if it is not.
  virtual void check_save() const = 0;
  /// Returns true if the end of the loop, after a stop, ends the training of the other processes of a group, too.
  [[nodiscard]] virtual bool must_leave_group() const noexcept = 0;
  /// Returns true if a recovery failed with `failure` because of a stop while the processes of a group waited for each other. Forgets the
  /// failure then: the loop ends as after any stop.
  [[nodiscard]] virtual bool ends_in_formation(const std::exception_ptr& failure) noexcept = 0;
  /// Called at the end of a loop. @errors A failure that a thread reported, if the session does not recover.
  virtual void check_threads() const = 0;

protected:
  protocol_host() = default;
};

/// The scripts of one session. One script runs at a time.
/// @lifetime `state` and `host` must outlive it, and it must outlive its scripts.
/// @threads The session's thread.
class session_protocol {
public:
  session_protocol(session_state& state, protocol_host& host) noexcept : state_(state), host_(host) {}
  session_protocol(const session_protocol&) = delete;
  session_protocol& operator=(const session_protocol&) = delete;

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
