// SPDX-License-Identifier: Apache-2.0
//
// A fence at which a model waits in each step, before the model changes its variables. Before the model reaches the fence, the session may
// copy the variables for a snapshot while the step computes.
#pragma once

#include "stepwell/base/variable.hpp"

#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace stepwell {

namespace detail {
class pending_copy;
}

/// The last parameter of `step`, for models whose variables may be copied while a step computes. A model with such a parameter promises to
/// call `wait` in each step before it changes a variable. When a checkpoint is due after a step, the session copies the variables during
/// the next step, while that step computes its gradients. Training then does not stop for the copy:
///
///     double step(const batch& examples, stepwell::update_fence& fence) {
///       const auto [loss, gradients] = backward(forward(examples));
///       fence.wait();
///       apply(gradients);
///       return loss;
///     }
///
/// If a step changes a variable before it calls `wait`, mark the variable with `variable_ref::early()`. The session copies such a variable
/// before the step begins. In any case, it copies these before the step: variables up to 4 KiB, variables of strings, the global step, and
/// the state of hooks and sources.
///
/// If a device copies variables while the host computes (`device_elements::start_copy_to`), `wait` does not block the host: the device makes
/// the changes of the step after it has read the variables.
///
/// A step may replace a LibTorch tensor by another one before `wait` (`hidden = next;`): the copy holds the elements of the previous one.
///
/// Other code, such as the body of the loop or `before_run` of a hook, may change the model between two steps. Such code has no fence: mark
/// the variables that it changes as `early()`, too. The session itself waits for the copy before it feeds a member of the model, after a
/// failed step, before a restore, and at `close`. If a step does not call `wait`, the session waits at the end of the step. If several
/// sessions share the model through a master, all variables are copied between two steps, and `wait` does nothing.
/// @threads The thread of the step.
/// @see     CheckFreq (Mohan, Phanishayee, Chidambaram; FAST 2021), section 4.2
class update_fence {
public:
  update_fence() noexcept = default;
  update_fence(update_fence&&) noexcept = default;
  update_fence& operator=(update_fence&&) = delete;
  /// Calls `settle()`.
  ~update_fence() { settle(); }

  /// Blocks until all variables in host memory are copied. The calling thread and the thread that writes the checkpoint copy the remaining
  /// variables together. Devices delay the changes that follow.
  /// @errors `failed_precondition_error` if checks are on, and a variable that may be copied during a step has changed since the end of the
  ///         previous step, or has other memory: it was resized, replaced or destroyed. The message names the variable. Early variables and
  ///         variables on a device are not checked. Errors of a device.
  /// @cost   One comparison if no snapshot is being copied. Otherwise at most one copy of the variables and, if checks are on, one checksum
  ///         of the variables.
  void wait() {
    if (!pending_.empty()) [[unlikely]] { wait_for_copies(); }
  }
  /// Returns true if a snapshot is being copied.
  [[nodiscard]] bool is_pending() const noexcept { return !pending_.empty(); }

  /// Blocks like `wait`, but without checks and without errors.
  void settle() noexcept;
  /// Turns the checks of later snapshots on or off. A checked snapshot is copied before the step, so that no thread reads a variable that is
  /// resized too early. `wait` then compares the memory of each variable and its checksum. A session turns the checks on for some snapshots,
  /// see `training_options::check_update_fence`.
  void set_checks(bool checks) noexcept { checks_ = checks; }
  [[nodiscard]] bool checks() const noexcept { return checks_; }
  /// Sets the function that lists the variables of the model. A check calls it in `wait`, and finds variables that have other memory. Without
  /// this function, a check compares the content only, and reads the memory that each variable had at the end of the previous step.
  void list_with(std::function<variable_list()> list) { list_ = std::move(list); }
  /// Adds a copy for which `wait` will block. Called by `snapshot::capture`.
  void add(std::shared_ptr<detail::pending_copy> copy) { pending_.push_back(std::move(copy)); }

private:
  void wait_for_copies();

  std::vector<std::shared_ptr<detail::pending_copy>> pending_;
  std::function<variable_list()> list_;
  bool checks_ = false;
};

}  // namespace stepwell
