// SPDX-License-Identifier: Apache-2.0
//
// The numbers that a session reports: its metrics, and the values that its hooks have measured.
#pragma once

#include "stepwell/base/clock.hpp"
#include "stepwell/checkpoint/detail/save_backlog.hpp"
#include "stepwell/protocol/preemption_plan.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace stepwell {

/// The metrics of a session at one moment.
/// @threads A copy; `metrics()` of a session may be called on any thread.
struct session_metrics {
  /// The step that the session has reached: the last step that it has done. Before its first step, the step at which it began. A recovery
  /// changes the number only when the next step is done.
  std::int64_t global_step = 0;

  std::int64_t recoveries = 0;  ///< Attempts to recover, successful or not.
  std::int64_t creations = 0;   ///< Creations of the session: the first one, and one for each recovery that created the session again.
  std::int64_t rollbacks = 0;   ///< Rollbacks requested by hooks.

  std::int64_t saves = 0;                          ///< Durable checkpoints.
  std::int64_t saves_failed = 0;                   ///< Saves that failed permanently.
  std::int64_t saves_skipped = 0;                  ///< Saves that were due but skipped, because the disk was too slow.
  std::int64_t saves_postponed = 0;                ///< Saves that were due during another save, and therefore made later.
  std::int64_t saves_waited = 0;                   ///< Saves that were made in time, but first waited until earlier saves had ended.
  std::int64_t bytes_saved = 0;                    ///< Total size of all durable checkpoints.
  std::chrono::duration<double> last_save_time{};  ///< Time from the copy of the state until the checkpoint was durable.
  std::chrono::duration<double> total_save_time{};
  std::chrono::duration<double> total_save_wait{};  ///< Time for which the session was blocked by the waits that `saves_waited` counts.
  save_backlog under_way = {};                      ///< Saves in flight: accepted, but not yet durable.
  /// The most recent decision whether the final state is saved, made after a signal had requested the process to end. Empty if none was
  /// made.
  std::optional<preemption_plan> preemption = std::nullopt;

  std::size_t snapshot_bytes = 0;                        ///< Bytes held for snapshots of saves and for the recovery copy.
  std::map<std::string, std::size_t> queue_depths = {};  ///< Number of elements in the queue of each queue runner, by the queue's name.
};

/// A value of something that a hook measures, such as the mean of an epoch or a metric of an evaluation.
struct history_value {
  std::string name;       ///< The name of the value. Values of an evaluation have the names of their tags: "validation/loss".
  double value = 0;       ///< The value. It may be NaN.
  std::int64_t step = 0;  ///< The global step of the state to which the value belongs.
};

/// A condition that will end the loop of a session, and how far it is fulfilled. For displays.
struct stop_condition {
  std::string name;  ///< For example "early stopping". A session has one condition of each name.
  std::string text;  ///< For example "no better loss in 5 values".
  std::string unit;  ///< The unit of `reached` and `limit`, for example "values". Seconds if there is an `end`.
  double reached = 0;
  double limit = 0;                                     ///< The loop ends when `reached` has this value.
  std::optional<clock::time_point> end = std::nullopt;  ///< The time of the session's clock at which the loop ends. Replaces `reached`.
};

}  // namespace stepwell
