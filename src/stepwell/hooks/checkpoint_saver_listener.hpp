// SPDX-License-Identifier: Apache-2.0
//
// The interface of listeners, which are notified when checkpoints are saved.
// @see contract HOOK-CKPT-16
#pragma once

#include "stepwell/checkpoint/saver.hpp"

#include <cstdint>

namespace stepwell {

/// A listener; override the functions that you need. An exception of a listener is thrown at the boundary, after all other listeners were
/// notified.
/// @threads The session's thread.
class checkpoint_saver_listener {
public:
  virtual ~checkpoint_saver_listener() = default;

  /// Called once, before the session exists.
  virtual void begin() {}
  /// Called before the state of `step` is copied; not called for a save that is skipped. The state may be read, but not changed.
  /// `after_save` does not follow if the save fails or is replaced by a newer one.
  virtual void before_save(std::int64_t /*step*/) {}
  /// Called at the first boundary at which the checkpoint is durable. Returns true to request a stop of the session. The request is ignored
  /// for the checkpoint at the start of a fresh run, and for the checkpoints that a closing session waits for.
  virtual bool after_save(const saved_checkpoint& /*saved*/) { return false; }
  /// Called at a clean close, after the last checkpoint.
  virtual void end(std::int64_t /*step*/) {}
};

}  // namespace stepwell
