// SPDX-License-Identifier: Apache-2.0
//
// The point in a step before which a model does not change its variables, so that a snapshot can be copied while the step computes.
#pragma once

#include <memory>
#include <vector>

namespace stepwell {

namespace detail {
class pending_copy;
}

/// A model whose `step` has a parameter `update_fence&` promises to call `wait` in each step before it changes a variable. The snapshot for
/// a due checkpoint is then copied while the step computes its gradients, and training does not stop for the copy:
///
///     double step(const batch& examples, stepwell::update_fence& fence) {
///       const auto gradients = backward(forward(examples));
///       fence.wait();
///       apply(gradients);
///     }
///
/// If a variable changes earlier in the step, declare the variable with `variable_ref::early()`. It is then copied before the step begins,
/// like variables on a device, variables of strings, the global step, and the state of hooks and sources. The promise includes other code
/// that changes the model between steps, such as the body of the loop and `before_run` of a hook: declare the variables that such code
/// changes with `early()`, too. The session itself waits for the copy before it feeds a member of the model, after a failed step, before a
/// restore, and at `close`. If a step does not call `wait`, the session waits at the end of the step.
/// @threads The thread of the step.
/// @see     CheckFreq (Mohan, Phanishayee, Chidambaram; FAST 2021), section 4.2
class update_fence {
public:
  update_fence() noexcept = default;
  update_fence(update_fence&&) noexcept = default;
  update_fence& operator=(update_fence&&) = delete;
  /// Waits like `wait`, but without checks.
  ~update_fence() { settle(); }

  /// Blocks until the snapshot no longer needs the variables. This thread and the thread that writes the checkpoint copy the remaining
  /// variables together.
  /// @errors `failed_precondition_error` that names the variable, if checks are on and a variable that is not marked with
  ///         `variable_ref::early()` has changed since the previous boundary. The checkpoint of that boundary then fails, unless its copy
  ///         was complete before the change.
  /// @cost   One comparison if no snapshot is being copied. Otherwise at most one copy of the variables and, if checks are on, one checksum
  ///         of the variables.
  void wait() {
    if (!pending_.empty()) [[unlikely]] { wait_for_copies(); }
  }
  /// Returns true if a snapshot is being copied.
  [[nodiscard]] bool is_pending() const noexcept { return !pending_.empty(); }

  /// Like `wait`, but without checks.
  void settle() noexcept;
  /// Turns the checks on or off, for later snapshots.
  void set_checks(bool checks) noexcept { checks_ = checks; }
  [[nodiscard]] bool checks() const noexcept { return checks_; }
  /// Adds a copy to wait for.
  void add(std::shared_ptr<detail::pending_copy> copy) { pending_.push_back(std::move(copy)); }

private:
  void wait_for_copies();

  std::vector<std::shared_ptr<detail::pending_copy>> pending_;
  bool checks_ = false;
};

/// True in a debug build of the library, in which the promise of `update_fence` is checked by default.
[[nodiscard]] bool checks_update_fence_by_default() noexcept;

}  // namespace stepwell
