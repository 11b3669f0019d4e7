// SPDX-License-Identifier: Apache-2.0
//
// The work that a session does for a hook at a boundary, the time between two steps, and at the close.
#pragma once

#include "stepwell/base/clock.hpp"
#include "stepwell/protocol/detail/boundary_state.hpp"
#include "stepwell/protocol/run_ending.hpp"
#include "stepwell/protocol/session_metrics.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <vector>

namespace stepwell {

/// Work that a session does for a hook, at boundaries and at the close. A hook registers it with `session_requests::add_work`.
/// @threads All functions are called on the session's thread, except `report`.
class boundary_work {
public:
  virtual ~boundary_work();

  /// Accepts the state for saving, without blocking on a disk. Returns false if it cannot accept the state now: the session then calls
  /// `wait_ready` and tries again. Called after `request_save`, when all hooks of the step have run. Also called before the process ends,
  /// if `wants_last_save` returned true. Not called for a state that a hook rejected, nor for a state that is not expected to become
  /// durable before the end of the process.
  virtual bool try_save(const boundary_state& /*state*/) { return true; }
  /// Commits the state that `try_save` holds because it precedes the body of its step. If the body has requested a stop, which this state
  /// lacks, discards it instead; the close saves the state with the stop. Called after `session_signals::note_held`, when the next operation
  /// of the session begins. Does not block on a disk.
  virtual void end_body() noexcept {}
  /// Discards the state that `try_save` holds, because its step is done again.
  virtual void drop_held() noexcept {}
  /// Blocks until `try_save` can accept a state, or until a stop is requested for `stop`. The session then calls `try_save` again.
  /// @errors `deadline_exceeded_error` if `until` passes before a state can be accepted.
  virtual void wait_ready(const deadline& /*until*/, const std::stop_token& /*stop*/) {}
  /// Returns true if `try_save` has postponed a save that can be made now. The session then calls `try_save` again. Called at boundaries,
  /// after `process_events`.
  [[nodiscard]] virtual bool is_save_due() { return false; }

  /// Starts to make all records that this work has written durable, without blocking on a disk. Returns a function that blocks until the
  /// records are durable, at most until `session_signals::end_of_commit_waits`. If writing them fails or lasts longer, that function logs
  /// this and returns. It may be called on any thread, and may outlive this object. Returns an empty function if this work writes no
  /// records. Called when a state is saved, because the checkpoint is committed only after these records are durable.
  [[nodiscard]] virtual std::function<void()> start_flush() { return nullptr; }

  /// Returns true if this work should save the state of `step` before the process ends. The session then calls `try_save`, if the save is
  /// expected to be durable in time.
  [[nodiscard]] virtual bool wants_last_save(std::int64_t /*step*/) const { return false; }

  /// Processes events from background threads. Called at the next boundary after a call of `session_signals::notify`, and after `drain` of
  /// all works.
  /// @errors Failures of the background work.
  virtual void process_events() {}

  /// Writes the records of background work that has ended to event files, such as those of durable checkpoints. Called before the first
  /// values of a session are written, so that records of earlier steps stand before their START. Otherwise `process_events` writes them.
  virtual void write_records() {}

  /// Called after a traced run: at the end of its boundary, or when the run has failed. An exception is logged as a warning.
  virtual void end_trace() {}

  /// Blocks until pending work is done. Called at the close, after `end` of all hooks; at each recovery; and for `checkpoint_now`.
  /// @errors Failures of the pending work. `deadline_exceeded_error` if `until` passes before the work is done.
  virtual void drain(const deadline& /*until*/) {}
  /// Records how the session ended. Called at the close, after `drain` of all works and before `flush` of any work.
  virtual void write_ending(const run_ending& /*ending*/) {}
  /// Flushes all output. Called last at the close; nothing is written afterwards.
  /// @errors `deadline_exceeded_error` if the output is not written when `until` passes.
  virtual void flush(const deadline& /*until*/) {}

  /// Starts to write the remaining output, without blocking. The background threads finish it. Called if an asynchronous session is
  /// destroyed without a close.
  virtual void detach() {}
  /// Keeps `hold` alive until this work has unlocked all files that it had locked, even if it unlocks them in the background.
  virtual void hold_until_released(const std::shared_ptr<void>& /*hold*/) {}

  /// Adds the values that this work has measured to `all`, oldest first. Called at the end of `run_all`.
  virtual void add_history(std::vector<history_value>& /*all*/) const {}

  /// Adds the metrics of this work to `all`.
  /// @threads Any: may be called at the same time as the other functions.
  virtual void report(session_metrics& /*all*/) const {}
};

}  // namespace stepwell
