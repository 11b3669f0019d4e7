// SPDX-License-Identifier: Apache-2.0
//
// The in-process master: sessions of one process that train one model together, a chief and its workers.
#pragma once

#include "stepwell/base/clock.hpp"
#include "stepwell/base/detail/type_key.hpp"
#include "stepwell/creation/detail/step_gate.hpp"
#include "stepwell/creation/session_config.hpp"
#include "stepwell/hook/session_signals.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

namespace stepwell {

class local_master;
class master_scope;

/// What the sessions at a master have in common: one object, and how its steps get on with each other.
struct master_subject {
  const void* address = nullptr;
  type_key type;
  bool steps_are_concurrent = false;

  friend bool operator==(const master_subject&, const master_subject&) = default;
};

/// Refuses what no session can be made for.
/// @errors `invalid_argument_error` naming what is possible, unless `master` is empty or "local:NAME".
void check_master_name(const std::string& master);

/// One session's seat at the master "local:NAME", which begins with the first seat taken and ends when the last is left.
///
/// * Steps pass a gate one at a time, in the order of arrival, or together where the subject says that its steps are
///   concurrent. The gate is held until the hooks have seen the step's values. Restoring and copying the state take it
///   alone. Who is inside may go in again; to enter the gate of one master from inside that of another session at it is to
///   wait for oneself.
/// * A chief makes the subject ready: it opens a latch on which workers wait, and begins a new generation. A step of an
///   older generation is refused with `aborted_error` before the subject is touched; the recovery of that session waits
///   for the latch and does the step again.
/// * While a chief makes the subject ready the latch is closed, and stays closed where that fails. A chief that leaves,
///   by `close`, by an error or to recover, leaves the latch as it is: what it made ready stays so, workers go on, and
///   others may come, as TensorFlow's do while the servers live. Another chief may then take the seat.
/// * The global step is the master's: plus one for each step of anybody.
///
/// @threads One session's, as the session itself; `global_step` any.
class master_seat {
public:
  /// @errors `invalid_argument_error` for a master that is not "local:NAME", and "All sessions on it reference the same
  ///         model object" where they do not; `failed_precondition_error` for a second chief.
  master_seat(const session_target& target, const master_subject& subject);
  master_seat(const master_seat&) = delete;
  master_seat& operator=(const master_seat&) = delete;
  ~master_seat() { close(); }

  /// Waits for its turn to step.
  /// @errors `aborted_error` where the subject was made ready anew since this session joined, or is not ready;
  ///         `failed_precondition_error` after `close`.
  [[nodiscard]] master_scope enter();
  /// Waits until nobody steps, restores or copies, and keeps others out.
  /// @errors `failed_precondition_error` after `close`, and inside a step that others may share.
  [[nodiscard]] master_scope enter_alone();
  [[nodiscard]] bool is_inside() const noexcept { return depth_ > 0; }

  /// Of everybody; after `close`, as it was then.
  [[nodiscard]] std::int64_t global_step() const noexcept;
  /// @pre Inside.
  void set_global_step(std::int64_t step) noexcept;
  /// Where it is kept: read it as an atomic at any time, write it so inside. @pre Not closed. @lifetime Until `close`.
  [[nodiscard]] std::int64_t& shared_step() noexcept;

  /// For a chief: alone, with the latch closed, and a new generation begun, of which this session is. Takes the seat again
  /// if it was left.
  /// @errors `failed_precondition_error` for a worker, or where somebody else is chief by now.
  [[nodiscard]] master_scope begin_preparing();
  /// The subject stands ready at `step`: opens the latch. @pre Inside `begin_preparing`.
  void end_preparing(std::int64_t step);

  [[nodiscard]] bool is_chief_ready() const;
  /// Waits for the latch; false if `until` has come, or a stop of the session's. Woken by either, does not poll.
  bool wait_for_chief(session_signals& signals, clock& time, clock::time_point until);
  /// From now on this session's steps are of the present generation. @pre Inside.
  void join() noexcept;

  /// Leaves the seat. The second time it does nothing.
  void close() noexcept;
  [[nodiscard]] bool is_closed() const noexcept { return master_ == nullptr; }

private:
  friend class master_scope;

  void take();
  void go_in(step_gate::entry as);
  void go_out() noexcept;
  [[nodiscard]] local_master& master() const;

  session_target target_;
  master_subject subject_;
  std::shared_ptr<local_master> master_;
  std::uint64_t generation_ = 0;
  std::int64_t left_at_ = 0;
  int depth_ = 0;
  step_gate::entry entered_ = step_gate::entry::alone;
};

/// Inside the gate, until it goes; or nowhere, where there is no master.
class [[nodiscard]] master_scope {
public:
  master_scope() noexcept = default;
  master_scope(master_scope&& other) noexcept : seat_(std::exchange(other.seat_, nullptr)) {}
  master_scope& operator=(master_scope&&) = delete;
  ~master_scope() {
    if (seat_ != nullptr) [[unlikely]] { seat_->go_out(); }
  }

private:
  friend class master_seat;
  explicit master_scope(master_seat& seat) noexcept : seat_(&seat) {}

  master_seat* seat_ = nullptr;
};

/// How many sessions sit at "local:NAME": 0 where there is no such master. For tests and diagnostics.
[[nodiscard]] int sessions_at(const std::string& master);

}  // namespace stepwell
