// SPDX-License-Identifier: Apache-2.0
//
// Decides which states can still be saved when the process is about to end and only a limited time is left. Does no I/O.
#pragma once

#include "stepwell/checkpoint/save_backlog.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace stepwell {

/// The decision about a state that is due to be saved.
enum class preemption_choice {
  save,    ///< The state is saved, after the saves in flight.
  finish,  ///< The state is not saved: there is not enough time. The saves in flight are expected to finish.
  leave,   ///< The state is not saved. Only the checkpoints that are already durable are expected to remain.
};

/// The input of the decision.
struct preemption_facts {
  std::chrono::duration<double> left{};           ///< Time until everything must be on the disk.
  std::uint64_t state_bytes = 0;                  ///< Size of the state that is due to be saved.
  save_backlog under_way = {};                    ///< Saves in flight, which are written first.
  std::uint64_t measured_bytes = 0;               ///< Total size of the saves so far.
  std::chrono::duration<double> measured_time{};  ///< Total duration of the saves so far.
};

/// The decision, and the times that it is based on.
struct preemption_plan {
  preemption_choice choice = preemption_choice::save;
  std::chrono::duration<double> left{};  ///< Remaining time at the moment of the decision.
  /// Expected times: `for_all` for the saves in flight and the state, `for_backlog` for the saves in flight alone. Empty if no save has
  /// been measured.
  std::optional<std::chrono::duration<double>> for_all = std::nullopt;
  std::optional<std::chrono::duration<double>> for_backlog = std::nullopt;

  /// Returns one sentence for log messages.
  [[nodiscard]] std::string to_string() const;
};

/// Decides to save the state if it is expected to be durable in time. The expected time is 1.25 times the time that the bytes take at the
/// rate of the saves so far, or at the rate of the save in flight if that is slower. If no save has been measured, the state is saved as
/// long as any time is left: an interrupted save is harmless, and the directory may still lack a checkpoint.
[[nodiscard]] preemption_plan plan_preemption(const preemption_facts& known) noexcept;

}  // namespace stepwell
