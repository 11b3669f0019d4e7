// SPDX-License-Identifier: Apache-2.0
//
// The boundary between two steps, at which a session does the work that its hooks requested.
#pragma once

#include "stepwell/base/clock.hpp"
#include "stepwell/base/variable.hpp"
#include "stepwell/hook/session_metrics.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace stepwell {

/// The complete state at a boundary. All hooks of the step have run.
/// @lifetime Valid during the call that receives it.
struct boundary_state {
  std::int64_t global_step;
  variable_list variables;  ///< Variables of the model, `global_step`, and the library's own variables below `stepwell/`.
  /// Blocks until the records that the session's works wrote up to this step are durable. May be called on any thread and at any later
  /// time. Empty if there are no records.
  /// @see `boundary_work::start_flush`
  std::function<void()> wait_for_records = nullptr;
};

/// A point in time on the session's clock, convertible to the same point on another clock.
class deadline {
public:
  deadline(const clock& source, clock::time_point when) noexcept : source_(&source), when_(when) {}

  /// Returns a deadline that never passes.
  [[nodiscard]] static deadline never(const clock& source) noexcept { return {source, clock::time_point::max()}; }

  /// Returns the same point in time on `other`: the remaining time is the same.
  [[nodiscard]] clock::time_point on(const clock& other) const {
    if (&other == source_ || when_ == clock::time_point::max()) { return when_; }
    return other.now() + (when_ - source_->now());
  }
  /// Returns the remaining time, zero if the deadline has passed.
  [[nodiscard]] clock::duration remaining() const {
    if (when_ == clock::time_point::max()) { return clock::duration::max(); }
    return std::max(when_ - source_->now(), clock::duration::zero());
  }

private:
  const clock* source_;
  clock::time_point when_;
};

/// The result of a session that was closed. Not reported by a session that is destroyed before it is closed.
enum class session_ending {
  finished,     ///< The session was closed, and no failure occurred.
  interrupted,  ///< The session was closed because the process ends or its time is up; another process will continue.
  failed,       ///< A failure or a NaN ended the session, or the close failed.
};

/// Work at boundaries and at the close, done by the session for a hook.
/// @threads All functions are called on the session's thread.
class boundary_work {
public:
  virtual ~boundary_work();

  /// Accepts the state for saving, without blocking on a disk. Returns false if it cannot accept the state now: the session then calls
  /// `wait_ready` and tries again. Called after all hooks of the step have run, for each `request_save`, and before the process ends if
  /// `wants_last_save` returned true. A state that was rejected is skipped, as is a state that would become durable only after the end of
  /// the process.
  virtual bool try_save(const boundary_state& /*state*/) { return true; }
  /// Blocks until `try_save` can accept a state.
  /// @errors `deadline_exceeded_error` if it still cannot accept one at `until`.
  virtual void wait_ready(const deadline& /*until*/) {}

  /// Starts to make all records written so far durable, without blocking on a disk. Returns a function that blocks until they are durable,
  /// or until writing them has failed, which the function logs. The function may be called on any thread, and may outlive this object. It
  /// is empty if this work writes no records. Called when a state is saved: a checkpoint is committed after these records.
  [[nodiscard]] virtual std::function<void()> start_flush() { return nullptr; }

  /// Returns true if the state of `step` should be saved because the process ends. The session then calls `try_save`, if the save is
  /// expected to be durable in time.
  [[nodiscard]] virtual bool wants_last_save(std::int64_t /*step*/) const { return false; }

  /// Processes events from background threads; called at the boundary after `session_signals::notify`.
  /// @errors Failures of the background work.
  virtual void process_events() {}

  /// Notifies the work that a traced run and its boundary have ended. Called last at that boundary, or when the run has failed. An
  /// exception is logged as a warning.
  virtual void end_trace() {}

  /// Blocks until pending work is done. Called at the close, after `end` of all hooks, and at each recovery.
  /// @errors Failures of the pending work.
  virtual void drain(const deadline& /*until*/) {}
  /// Writes how the session ended. Called at the close, after all works were drained and before the first is flushed.
  virtual void write_ending(session_ending /*how*/) {}
  /// Flushes all output. Called last at the close; nothing is written afterwards.
  /// @errors `deadline_exceeded_error` if it takes longer than `until`.
  virtual void flush(const deadline& /*until*/) {}

  /// Starts to write the remaining output, without blocking; it is finished in the background. Called if the session is destroyed without a
  /// close.
  virtual void detach() {}
  /// Keeps `hold` alive until all files that this work has locked are released, including those released in the background.
  virtual void hold_until_released(const std::shared_ptr<void>& /*hold*/) {}

  /// Adds the metrics of this work to `all`.
  virtual void report(session_metrics& /*all*/) const {}
};

}  // namespace stepwell
