// SPDX-License-Identifier: Apache-2.0
//
// One at a time, or many together: in the order of arrival, so that nobody is left waiting while others come and go.
#pragma once

#include <condition_variable>
#include <mutex>

namespace stepwell {

/// Like a shared mutex, but fair, and whoever is inside may leave on another thread than it entered on.
/// Who waits alone holds up those that come later and would share: a restore is not starved by steps.
/// @threads Any. @cost A mutex to enter and to leave; a wait only where somebody is in the way.
class step_gate {
public:
  enum class entry { alone, shared };

  step_gate() = default;
  step_gate(const step_gate&) = delete;
  step_gate& operator=(const step_gate&) = delete;

  /// Waits for its turn. Not to be entered again by who is inside: it would wait for itself.
  void enter(entry as);
  /// @pre Inside, entered so.
  void leave(entry as) noexcept;
  /// How many wait, for tests and diagnostics.
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
  waiter* last_ = nullptr;  // of meaning only while there is a first
};

}  // namespace stepwell
