// SPDX-License-Identifier: Apache-2.0
//
// Engines: the libraries that connect the processes of a group.
#pragma once

#include "stepwell/base/clock.hpp"
#include "stepwell/group/detail/collective.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string_view>

namespace stepwell {

/// Options for forming a collective. A collective is a fixed set of processes of a group that add and exchange data. After the loss of a
/// process, the engine forms a new one. Each collective has a number, its generation.
struct formation {
  clock& time;
  /// The formation ends with `cancelled_error` when a stop is requested for this token.
  std::stop_token stop;
  /// The formation ends with `deadline_exceeded_error` at this time.
  clock::time_point until;
  /// The smallest number of processes. The first formation waits for all processes. A formation after a loss waits for more than `min_size`
  /// processes only for `patience`.
  int min_size;
  clock::duration patience;
  /// The generation of the last collective of this process; 0 at the first formation.
  std::int64_t last_generation;
  /// True if that collective has failed: rank 0 then does not wait for processes that have announced their end.
  bool is_recovery = false;
  /// Called repeatedly while the formation waits. Throws if this process must not take part any more, for example because another process has
  /// taken over the directory of rank 0: the formation ends with that exception.
  std::function<void()> check = {};
};

/// A process that has ended the training.
struct ended_process {
  int rank;
  std::int64_t cause;  ///< The argument of `group::leave`.
};

/// A collective, and its generation.
struct formed_collective {
  std::unique_ptr<collective> processes;
  /// Higher than the generation of each earlier collective of one of these processes.
  std::int64_t generation;
  /// A process that rank 0 does not wait for, because it has ended the training. Only rank 0 gets it.
  std::optional<ended_process> ended = {};
};

/// Connects the processes of a group.
/// @threads One thread at a time.
class engine {
public:
  engine() = default;
  engine(const engine&) = delete;
  engine& operator=(const engine&) = delete;
  virtual ~engine() = default;

  /// Returns the name of the engine in messages, for example "MPI".
  [[nodiscard]] virtual std::string_view name() const noexcept = 0;
  /// Return the rank of this process and the number of processes that the launcher has started.
  [[nodiscard]] virtual int rank() const noexcept = 0;
  [[nodiscard]] virtual int size() const noexcept = 0;
  /// Returns true if `form` can be called again after a loss. Otherwise a lost process ends the job, and the launcher starts it again.
  [[nodiscard]] virtual bool can_form_again() const noexcept = 0;
  /// Forms a collective. Blocks until all processes take part, or as many as `how` demands.
  /// @pre The previous collective of this engine is destroyed.
  /// @errors `deadline_exceeded_error`, which names the missing ranks. `cancelled_error` after a stop. `failed_precondition_error` if another
  ///   process has taken the rank of this one.
  [[nodiscard]] virtual formed_collective form(const formation& how) = 0;
  /// Informs rank 0 that this process ends the training: later formations do not wait for this rank. Does nothing if the engine cannot form
  /// again.
  /// @errors `unavailable_error` if rank 0 cannot be reached.
  virtual void announce_end(std::int64_t /*cause*/) {}
};

/// Returns the engine of a process without a launcher: one process, in which a sum changes nothing.
[[nodiscard]] std::unique_ptr<engine> make_single_process_engine();

}  // namespace stepwell
