// SPDX-License-Identifier: Apache-2.0
//
// The in-process master: connects the sessions of one process that train one model together, a chief and its workers.
#pragma once

#include "stepwell/base/clock.hpp"
#include "stepwell/base/detail/locks.hpp"
#include "stepwell/base/detail/type_key.hpp"
#include "stepwell/creation/session_creation.hpp"
#include "stepwell/protocol/session_signals.hpp"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace stepwell {

/// A shared mutex that is fair, and that may be unlocked on another thread than it was locked on. A waiter for exclusive access blocks
/// later requests for shared access, so that steps do not starve a restore.
/// @threads Any.
/// @cost One mutex to enter and one to leave; waits only if the gate is taken.
class fair_shared_mutex {
public:
  enum class entry { alone, shared };

  fair_shared_mutex() = default;
  fair_shared_mutex(const fair_shared_mutex&) = delete;
  fair_shared_mutex& operator=(const fair_shared_mutex&) = delete;

  /// Blocks until the gate is entered. Not reentrant: a thread that enters twice deadlocks.
  void enter(entry as);
  /// Leaves the gate.
  /// @pre The gate was entered with the same `as`.
  void leave(entry as) noexcept;
  /// Returns the number of waiters, for tests and diagnostics.
  [[nodiscard]] int waiting() const;

private:
  struct waiter {
    entry as;
    bool is_in = false;
    std::condition_variable admitted = {};
    waiter* next = nullptr;
  };

  [[nodiscard]] bool is_open_for(entry as) const noexcept STEPWELL_HOLDS(mutex_) {
    return !has_one_alone_ && (as == entry::shared || sharing_ == 0);
  }
  void admit(entry as) noexcept STEPWELL_HOLDS(mutex_);

  mutable detail::checked_mutex mutex_;
  bool has_one_alone_ STEPWELL_GUARDED_BY(mutex_) = false;
  int sharing_ STEPWELL_GUARDED_BY(mutex_) = 0;
  waiter* first_ STEPWELL_GUARDED_BY(mutex_) = nullptr;
  waiter* last_ STEPWELL_GUARDED_BY(mutex_) = nullptr;  // valid only if `first_` is not null
};

class local_master;
class master_scope;

/// The object that the sessions at a master share, and whether its steps may run concurrently.
struct master_subject {
  const void* address = nullptr;
  type_key type;
  bool steps_are_concurrent = false;

  friend bool operator==(const master_subject&, const master_subject&) = default;
};

/// The connection of one session to the master "local:NAME". The master is created with the first connection and destroyed with the last.
///
/// * Steps pass a gate, one at a time in the order of arrival. If the subject supports concurrent steps, they may run together. The gate is
///   held until the hooks have processed the values of the step. Restoring and copying the state need exclusive access. The gate is
///   reentrant for the session that holds it. A session deadlocks if it enters the gate of a master while it is inside the gate of the same
///   master on behalf of another session.
/// * A chief makes the subject ready: it opens a latch for which workers wait, and begins a new generation. A step of an older generation
///   fails with `aborted_error` before it touches the subject. The recovery of its session waits for the latch and repeats the step.
/// * The latch is closed while a chief makes the subject ready, and stays closed if that fails. A chief that disconnects, by `close`, by an
///   error or for a recovery, leaves the latch unchanged: the subject stays ready, workers continue, and other sessions may connect.
///   TensorFlow behaves the same while its servers are alive. Another chief may connect afterwards.
/// * The global step belongs to the master. Each step of each session increases it by one.
///
/// @threads The thread of its session. `global_step`: any thread.
class master_connection {
public:
  /// Connects to the master of `target`, and creates the master if it does not exist.
  /// @errors `invalid_argument_error` if the master is not "local:NAME", and "All sessions on it reference the same model object" if
  ///   `subject` differs from that of the master; `failed_precondition_error` for a second chief.
  master_connection(const session_target& target, const master_subject& subject);
  master_connection(const master_connection&) = delete;
  master_connection& operator=(const master_connection&) = delete;
  ~master_connection() { close(); }

  /// Blocks until this session may step. The returned object holds the gate.
  /// @errors `aborted_error` if the subject is not ready, or was made ready again since this session joined; `failed_precondition_error`
  ///   after `close`.
  [[nodiscard]] inline master_scope enter();
  /// Blocks until no session steps, restores or copies. The returned object holds the gate exclusively.
  /// @errors `failed_precondition_error` after `close`, and inside a concurrent step.
  [[nodiscard]] master_scope enter_alone();
  [[nodiscard]] bool is_inside() const noexcept { return depth_ > 0; }

  /// Returns the global step of the master. After `close`, returns its value at the time of `close`.
  [[nodiscard]] std::int64_t global_step() const noexcept;
  /// Sets the global step of the master.
  /// @pre The gate is held.
  void set_global_step(std::int64_t step) noexcept { std::atomic_ref(shared_step()).store(step, std::memory_order_relaxed); }
  /// Returns a reference to the global step. It may be read as an atomic at any time, and written as an atomic while the gate is held.
  /// @pre Not closed.
  /// @lifetime Valid until `close`.
  [[nodiscard]] std::int64_t& shared_step() noexcept;

  /// Prepares the subject on behalf of a chief: closes the latch and begins a new generation, which this session joins. Reconnects first if
  /// the session has disconnected. The returned object holds the gate exclusively.
  /// @errors `failed_precondition_error` for a worker, or if another session is chief now.
  [[nodiscard]] master_scope begin_preparing();
  /// Declares the subject ready at `step`, and opens the latch.
  /// @pre The object returned by `begin_preparing` is held.
  void end_preparing(std::int64_t step);

  /// Returns true if the latch is open.
  [[nodiscard]] bool is_chief_ready() const;
  /// Blocks until the latch is open. Returns false if `until` has passed, or if the session was stopped or interrupted. Both wake the wait
  /// at once; it does not poll.
  bool wait_for_chief(session_signals& signals, clock& time, clock::time_point until);
  /// Makes the following steps of this session belong to the current generation.
  /// @pre The gate is held.
  void join() noexcept;

  /// Disconnects from the master. Further calls do nothing.
  void close() noexcept;
  [[nodiscard]] bool is_closed() const noexcept { return master_ == nullptr; }

private:
  friend class master_scope;

  void take();
  void admit();
  void go_in(fair_shared_mutex::entry as);
  void go_out() noexcept;
  [[nodiscard]] local_master& master() const;

  session_target target_;
  master_subject subject_;
  std::shared_ptr<local_master> master_;
  std::uint64_t generation_ = 0;
  std::int64_t left_at_ = 0;
  int depth_ = 0;
  fair_shared_mutex::entry entered_ = fair_shared_mutex::entry::alone;
};

/// Holds the gate of a master until it is destroyed. A default-constructed object is empty; it is used by sessions that have no master.
class [[nodiscard]] master_scope {
public:
  master_scope() noexcept = default;
  master_scope(master_scope&& other) noexcept : connection_(std::exchange(other.connection_, nullptr)) {}
  master_scope& operator=(master_scope&&) = delete;
  [[gnu::always_inline]] ~master_scope() {
    if (connection_ != nullptr) [[unlikely]] { connection_->go_out(); }
  }

private:
  friend class master_connection;
  explicit master_scope(master_connection& seat) noexcept : connection_(&seat) {}

  master_connection* connection_ = nullptr;
};

// Inlined, so that the scope of a step stays in a register.
inline master_scope master_connection::enter() {
  admit();
  return master_scope(*this);
}

/// Returns the number of sessions connected to "local:NAME", 0 if that master does not exist. For tests and diagnostics.
[[nodiscard]] int sessions_at(const std::string& master);

}  // namespace stepwell
