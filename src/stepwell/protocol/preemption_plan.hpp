// SPDX-License-Identifier: Apache-2.0
//
// The decision whether a state can still be saved when the process is about to end.
#pragma once

#include "stepwell/checkpoint/detail/save_backlog.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace stepwell {

/// The decision about a state that should be saved before a preemption, that is, before the process has to end, for example because a
/// scheduler takes the machine.
enum class preemption_choice {
  save,    ///< The state is saved, after the saves in flight.
  finish,  ///< The state is not saved: there is not enough time for it. The saves in flight are expected to become durable.
  leave,   ///< The state is not saved, and the saves in flight are not expected to become durable either.
};

/// The input of `plan_preemption`.
struct preemption_facts {
  std::chrono::duration<double> left{};           ///< Time until everything must be on the disk.
  std::uint64_t state_bytes = 0;                  ///< Size of the state that is due to be saved.
  save_backlog under_way = {};                    ///< Saves in flight, which are written first.
  std::uint64_t measured_bytes = 0;               ///< Total size of the saves so far.
  std::chrono::duration<double> measured_time{};  ///< Total duration of the saves so far.
};

/// The result of `plan_preemption`: the decision, and the times on which it is based.
struct preemption_plan {
  preemption_choice choice = preemption_choice::save;
  std::chrono::duration<double> left{};  ///< Remaining time at the moment of the decision.
  /// Expected durations: `for_all` of the saves in flight and of the save of the state together, `for_backlog` of the saves in flight
  /// alone. Empty if no save has been measured.
  std::optional<std::chrono::duration<double>> for_all = std::nullopt;
  std::optional<std::chrono::duration<double>> for_backlog = std::nullopt;

  /// Returns one sentence for log messages.
  [[nodiscard]] std::string to_string() const;
};

/// Decides whether a state is saved before the process ends. The state is saved if it is expected to be durable in time. The expected
/// duration is 1.25 times the number of bytes still to be written (the rest of the saves in flight, and the state), divided by the mean
/// rate of the saves so far. If the save that is being written is already slower than this rate, the rate of that save is used. If no save
/// has been measured, or if no time is left and the process is still alive, the state is saved. The reason is that an interrupted save is
/// harmless, and that the directory may still lack a checkpoint.
[[nodiscard]] preemption_plan plan_preemption(const preemption_facts& known) noexcept;

}  // namespace stepwell
