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

/// The scripts of one session. One script runs at a time. `Host` is the session: it answers the questions that the scripts ask between two
/// pieces of work, and none of its answers blocks.
/// @lifetime `state` and `host` must outlive it, and it must outlive its scripts.
/// @threads The session's thread.
template<class Host>
class session_protocol : public script_frames {
public:
  session_protocol(session_state& state, Host& host) noexcept : state_(state), host_(host) {}

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

private:
  [[nodiscard]] script create();
  [[nodiscard]] script recover();
  [[nodiscard]] script begin();
  [[nodiscard]] script attempt_once(step_attempt& attempt);

  session_state& state_;
  Host& host_;
  std::int64_t reached_ = 0;  // the step reached before the recovery
};

}  // namespace stepwell::detail
