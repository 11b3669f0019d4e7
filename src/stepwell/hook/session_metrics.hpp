// SPDX-License-Identifier: Apache-2.0
//
// What a session has been through, in numbers.
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

/// @threads A copy, taken on the session's thread.
struct session_metrics {
  std::int64_t recoveries = 0;  ///< Tries, whether they succeeded or not (D-2).
  std::int64_t creations = 0;   ///< Of the session: the first, and one for each recovery that came so far.
  std::int64_t rollbacks = 0;   ///< Asked for by hooks.

  std::int64_t saves = 0;                          ///< Checkpoints that are durable.
  std::int64_t saves_failed = 0;                   ///< Given up for good.
  std::int64_t saves_skipped = 0;                  ///< Due, but the disk was slower than the cadence.
  std::int64_t bytes_saved = 0;                    ///< Of all durable checkpoints.
  std::chrono::duration<double> last_save_time{};  ///< From the copy to durability.
  std::chrono::duration<double> total_save_time{};
  save_backlog under_way = {};  ///< Handed over and not durable yet.
  /// What was decided about the state when a signal asked the process to end, if there is a time by which it must have.
  std::optional<preemption_plan> preemption = std::nullopt;

  std::map<std::string, std::size_t> queue_depths = {};  ///< What waits, by name: queues of runners, event files.
};

}  // namespace stepwell
