// SPDX-License-Identifier: Apache-2.0
//
// What can still be saved when a process is told to end and has so much time left. Decides, and touches nothing.
#pragma once

#include "stepwell/checkpoint/save_backlog.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace stepwell {

/// What is done about a state that would be saved.
enum class preemption_choice {
  save,    ///< It is saved, after what is under way.
  finish,  ///< It is not: there is no time. What is under way is expected to be finished.
  leave,   ///< It is not, and no more than the checkpoints that are durable is counted on.
};

/// What is known at that moment.
struct preemption_facts {
  std::chrono::duration<double> left{};           ///< Until everything must be on the disk.
  std::uint64_t state_bytes = 0;                  ///< To be saved.
  save_backlog under_way = {};                    ///< What has to be written before.
  std::uint64_t measured_bytes = 0;               ///< Of the saves so far.
  std::chrono::duration<double> measured_time{};  ///< How long they took.
};

struct preemption_plan {
  preemption_choice choice = preemption_choice::save;
  std::chrono::duration<double> left{};  ///< When this was decided.
  /// For what is under way and the state, and for the former alone. Nothing: no save has been measured.
  std::optional<std::chrono::duration<double>> for_all = std::nullopt;
  std::optional<std::chrono::duration<double>> for_backlog = std::nullopt;

  /// One sentence for people.
  [[nodiscard]] std::string to_string() const;
};

/// All of it, if it is expected to be durable in time; else nothing new. Expected is a quarter more than what the bytes take
/// at the rate of the saves so far, or at that of the save under way where it is slower than those. Where nothing was
/// measured the state is saved: a save that is cut off does no harm, and there may be no checkpoint yet at all.
[[nodiscard]] preemption_plan plan_preemption(const preemption_facts& known) noexcept;

}  // namespace stepwell
