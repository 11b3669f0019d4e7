// SPDX-License-Identifier: Apache-2.0
//
// Metrics of a session.
#pragma once

#include "stepwell/checkpoint/save_backlog.hpp"
#include "stepwell/hook/preemption.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace stepwell {

/// The metrics of a session at one moment.
/// @threads A copy, made on the session's thread.
struct session_metrics {
  std::int64_t recoveries = 0;  ///< Attempts, successful or not (contract D-2).
  std::int64_t creations = 0;   ///< Creations of the session: the first, and one for each recovery that reached creation.
  std::int64_t rollbacks = 0;   ///< Rollbacks requested by hooks.

  std::int64_t saves = 0;                          ///< Durable checkpoints.
  std::int64_t saves_failed = 0;                   ///< Saves that failed permanently.
  std::int64_t saves_skipped = 0;                  ///< Saves that were due but skipped, because the disk was slower than the cadence.
  std::int64_t bytes_saved = 0;                    ///< Total size of all durable checkpoints.
  std::chrono::duration<double> last_save_time{};  ///< Time from the copy of the state until the checkpoint was durable.
  std::chrono::duration<double> total_save_time{};
  save_backlog under_way = {};  ///< Saves in flight: accepted, but not yet durable.
  /// The decision about the state when a signal requested the process to end. Empty if the process has no deadline for its end.
  std::optional<preemption_plan> preemption = std::nullopt;

  std::map<std::string, std::size_t> queue_depths = {};  ///< Number of waiting items by name: queues of queue runners, event files.
};

}  // namespace stepwell
