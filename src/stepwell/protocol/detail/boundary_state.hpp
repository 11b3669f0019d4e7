// SPDX-License-Identifier: Apache-2.0
//
// The state that a session saves at a boundary, the time between two steps.
#pragma once

#include "stepwell/base/variable.hpp"
#include "stepwell/checkpoint/snapshot.hpp"
#include "stepwell/checkpoint/update_fence.hpp"
#include "stepwell/protocol/detail/recovery_copy.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

namespace stepwell {

/// The complete state at a boundary. All hooks of the step have run.
/// @lifetime Valid during the call that receives it.
struct boundary_state {
  std::int64_t global_step;
  variable_list variables;  ///< Variables of the model, `global_step`, and the library's own variables below `stepwell/`.
  /// Blocks until all records (of event files and metric files) up to this step are durable, at most until
  /// `session_signals::end_of_commit_waits`. The function may be called on any thread and at any later time. Empty if there are no records.
  /// @see `boundary_work::start_flush`
  std::function<void()> wait_for_records = nullptr;
  /// True if the process is about to end. The save is then not postponed.
  bool is_last = false;
  bool has_stop = false;  ///< True if `variables` has a stop. See `session_signals::stop_of_step`.
  /// True if the caller may still request a stop that belongs to this step: the body of its loop has not handled the step yet. A checkpoint
  /// from which another process continues must not be committed before `boundary_work::end_body`.
  bool precedes_body = false;
  /// The copy from which a recovery continues while the session has no checkpoint. Null if there is a checkpoint, or if the session keeps
  /// no copy. Work that saves the state must drop the copy before it takes a snapshot. If the save fails, the work must keep the snapshot
  /// as the copy.
  std::shared_ptr<recovery_copy> copy = nullptr;
  /// The fence at which the next step waits before it changes variables. A snapshot may still be copied while that step computes, until the
  /// step has waited at the fence. Null if a snapshot must be copied at once.
  update_fence* fence = nullptr;

  /// Copies the state into `memory`. If there is a `fence`, the copy is completed while the next step runs. Otherwise, idle threads of
  /// `helpers` may take part in the copy. @errors The errors of `snapshot::capture`.
  [[nodiscard]] snapshot capture(snapshot_pool::buffer memory, io::pool* helpers = nullptr) const {
    return fence ? snapshot::capture(std::move(memory), variables, global_step, *fence)
                 : snapshot::capture(std::move(memory), variables, global_step, helpers);
  }
};

}  // namespace stepwell
