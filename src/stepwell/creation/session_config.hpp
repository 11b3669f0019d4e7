// SPDX-License-Identifier: Apache-2.0
//
// Threads and executors of a session (contract CREATE-1, config).
#pragma once

#include "stepwell/io/pool.hpp"

#include <memory>
#include <string>

namespace stepwell {

/// Passed through to the raw session, which does with the numbers what it can: a model session leaves them to the model,
/// which finds them with `session.config()`. 0: as many as the raw session likes.
struct session_config {
  int intra_op_parallelism_threads = 0;
  int inter_op_parallelism_threads = 0;
  /// Where checkpoints and event files are written; null: the threads that all sessions of the process share.
  std::shared_ptr<io::pool> io = nullptr;
};

/// What a raw session is made for.
struct session_target {
  /// Empty: this session alone. "local:NAME": the sessions of this process that name the same master.
  std::string master = {};
  bool is_chief = true;
  session_config config = {};
};

}  // namespace stepwell
