// SPDX-License-Identifier: Apache-2.0
//
// Configuration of a session: threads and executors.
// @see contract CREATE-1
#pragma once

#include "stepwell/io/pool.hpp"

#include <memory>
#include <string>

namespace stepwell {

/// Settings that are passed to the raw session, which uses them as far as it can. A model session does not use the numbers; its model can
/// read them with `session.config()`. 0: the raw session chooses.
struct session_config {
  int intra_op_parallelism_threads = 0;
  int inter_op_parallelism_threads = 0;
  /// Threads on which checkpoints and event files are written. Null: the threads shared by all sessions of the process.
  std::shared_ptr<io::pool> io = nullptr;
};

/// The master, role and configuration for which a raw session is made.
struct session_target {
  /// Empty: a session without a master. "local:NAME": the session shares the master with the sessions of this process that use the same
  /// name.
  std::string master = {};
  bool is_chief = true;
  session_config config = {};
};

}  // namespace stepwell
