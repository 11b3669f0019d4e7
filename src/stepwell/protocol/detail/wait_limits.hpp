// SPDX-License-Identifier: Apache-2.0
//
// The times at which the waits of a session must end, so that its state can be saved after them, and the decision about that save.
#pragma once

#include "stepwell/base/clock.hpp"
#include "stepwell/base/detail/locks.hpp"
#include "stepwell/protocol/detail/boundary_state.hpp"
#include "stepwell/protocol/detail/boundary_works.hpp"
#include "stepwell/protocol/preemption_plan.hpp"
#include "stepwell/protocol/session_signals.hpp"

#include <optional>

namespace stepwell {

/// The limits of the waits of one session.
/// @lifetime The arguments of the constructor must outlive it.
/// @threads The session's thread, except `plan`.
class wait_limits {
public:
  wait_limits(const clock& time, session_signals& signals, const boundary_works& works) noexcept
      : time_(time), signals_(signals), works_(works) {}

  /// Sets the time for which a wait may last after a stop was requested. No limit by default.
  void set_grace_of_stop(clock::duration grace) noexcept { stop_grace_ = grace; }
  /// Returns the end of a wait that begins now, after a stop was requested.
  [[nodiscard]] deadline after_stop() const { return after(stop_grace_); }
  /// Returns `until` or the end of the process: the earlier of the two. If the end of the process has passed, one more grace begins,
  /// because a process that is still alive can still save.
  [[nodiscard]] deadline within_process(const deadline& until) const;
  /// Records that the session closes, and that the close must end at `until`. A second call replaces the time.
  void begin_close(const deadline& until);
  /// Returns `until`, or the end of the process if that is earlier because of a signal since `begin_close`.
  [[nodiscard]] deadline within_close(const deadline& until) const;
  /// Returns the time at which a wait that begins now must end, so that the last state can be saved after it. Never, unless a stop was
  /// requested, the session closes, or the process is about to end. A quarter of the grace is reserved for the save, or twice
  /// the expected duration of the save if that is longer.
  [[nodiscard]] deadline end_of_waits() const;

  /// Returns true if `state` should be saved. Returns false if the process would probably end before the save is durable. Logs the
  /// decision.
  [[nodiscard]] bool is_worth_saving(const boundary_state& state);
  /// Returns the most recent decision of `is_worth_saving` before the end of the process. @threads Any.
  [[nodiscard]] std::optional<preemption_plan> plan() const;

private:
  [[nodiscard]] deadline after(clock::duration grace) const;
  [[nodiscard]] clock::duration without_last_save(clock::duration grace) const;

  const clock& time_;
  session_signals& signals_;
  const boundary_works& works_;
  clock::duration stop_grace_ = clock::duration::max();
  std::optional<deadline> close_waits_;  // the end of waits; set when the session closes
  bool is_known_at_close_ = false;       // the process was about to end when the close began
  mutable detail::checked_mutex mutex_;
  std::optional<preemption_plan> plan_ STEPWELL_GUARDED_BY(mutex_);
};

}  // namespace stepwell
