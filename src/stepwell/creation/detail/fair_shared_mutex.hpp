// SPDX-License-Identifier: Apache-2.0
//
// A fair shared mutex: exclusive or shared access in the order of arrival, so that no waiter starves.
#pragma once

#include <condition_variable>
#include <mutex>

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

  [[nodiscard]] bool is_open_for(entry as) const noexcept { return !has_one_alone_ && (as == entry::shared || sharing_ == 0); }
  void admit(entry as) noexcept;

  mutable std::mutex mutex_;
  bool has_one_alone_ = false;
  int sharing_ = 0;
  waiter* first_ = nullptr;
  waiter* last_ = nullptr;  // valid only if `first_` is not null
};

}  // namespace stepwell
