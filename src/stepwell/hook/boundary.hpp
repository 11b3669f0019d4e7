// SPDX-License-Identifier: Apache-2.0
//
// The boundary between two steps: where a session does what its hooks requested.
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

/// The whole state at a boundary, whole because all hooks of the step have run.
/// @lifetime Valid during the call that receives it.
struct boundary_state {
  std::int64_t global_step;
  variable_list variables;  ///< Model, `global_step`, and everything of ours below `stepwell/`.
  /// Blocks until the records that the session's works wrote up to this step are durable; see `boundary_work::start_flush`.
  /// Callable on any thread, at any later time. Empty: there are no records.
  std::function<void()> wait_for_records = nullptr;
};

/// A time on the session's clock, for those who may keep another clock.
class deadline {
public:
  deadline(const clock& source, clock::time_point when) noexcept : source_(&source), when_(when) {}

  /// None at all.
  [[nodiscard]] static deadline never(const clock& source) noexcept { return {source, clock::time_point::max()}; }

  /// The same time on `other`: as far from now.
  [[nodiscard]] clock::time_point on(const clock& other) const {
    if (&other == source_ || when_ == clock::time_point::max()) { return when_; }
    return other.now() + (when_ - source_->now());
  }
  /// From now on; nothing when it has passed.
  [[nodiscard]] clock::duration remaining() const {
    if (when_ == clock::time_point::max()) { return clock::duration::max(); }
    return std::max(when_ - source_->now(), clock::duration::zero());
  }

private:
  const clock* source_;
  clock::time_point when_;
};

/// How a session that is closed has ended. One that is abandoned does not say.
enum class session_ending {
  finished,     ///< Closed, and nothing failed.
  interrupted,  ///< Closed because the process is to end or its time is up: another process will go on.
  failed,       ///< A failure or a NaN ended it, or closing failed.
};

/// Work that belongs to boundaries and to closing, done by the session on behalf of a hook.
/// @threads All functions are called on the session's thread.
class boundary_work {
public:
  virtual ~boundary_work();

  /// Takes the state, without waiting for a disk. False: not now; the session calls `wait_ready` and then again.
  /// Called for each `request_save`, after all hooks of the step have run.
  virtual bool try_save(const boundary_state& /*state*/) { return true; }
  /// Blocks until `try_save` can do better. @errors `deadline_exceeded_error` when it still cannot at `until`.
  virtual void wait_ready(const deadline& /*until*/) {}

  /// Requests that all records written so far become durable, without waiting for a disk. Returns a function that blocks until
  /// they are, or until writing them has failed, which it logs. It may be called on any thread, and outlives this object.
  /// Empty: this work writes no records. Called when a state is saved: a checkpoint is committed after these records.
  [[nodiscard]] virtual std::function<void()> start_flush() { return nullptr; }

  /// Whether it would save the state of this step, now that the process is to end. What it answers with yes is saved.
  [[nodiscard]] virtual bool wants_last_save(std::int64_t /*step*/) const { return false; }

  /// Something in the background asked for attention: deliver it. Throws what there is to throw.
  virtual void attend() {}

  /// A run that was traced is over, and so is its boundary; called last at that boundary, or when the run has failed. What
  /// it throws is a warning.
  virtual void end_trace() {}

  /// Closing, after all hooks' `end`: waits for what is under way. Throws what there is to throw.
  virtual void drain(const deadline& /*until*/) {}
  /// Closing, after all works were drained and before the first is flushed: writes how the session ended.
  virtual void write_ending(session_ending /*how*/) {}
  /// Closing, last of all: nothing is written after this. @errors `deadline_exceeded_error` when that takes longer.
  virtual void flush(const deadline& /*until*/) {}

  /// The session is abandoned: starts what is still to be written and waits for nothing. That is finished in the background.
  virtual void detach() {}
  /// Keeps `hold` until all files that this work has locked are released, also in the background.
  virtual void hold_until_released(const std::shared_ptr<void>& /*hold*/) {}

  /// Adds what there is to tell of it.
  virtual void report(session_metrics& /*all*/) const {}
};

}  // namespace stepwell
