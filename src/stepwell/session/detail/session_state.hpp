// SPDX-License-Identifier: Apache-2.0
//
// The state of a session: one enumeration, with the transitions that are allowed.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
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
  failed_midway,  ///< A run or a restore failed after it had begun. The state may be inconsistent.
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

}  // namespace stepwell::detail
