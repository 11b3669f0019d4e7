// SPDX-License-Identifier: Apache-2.0
//
// The gradients of a model in one flat tensor, for one sum of a group in each step.
#pragma once

#include "stepwell/group/group.hpp"

#include <ATen/core/Tensor.h>

#include <vector>

namespace stepwell::libtorch {

/// Holds the gradients of parameters as views of one flat tensor for each element type. `backward` adds into the views, so the sum of a group
/// needs no copy:
///
///     bucket.zero();  // instead of optimizer.zero_grad(), which may remove the views
///     loss.backward();
///     bucket.sum(*group);
///     optimizer.step();
///
/// Parameters of one type cost one sum in each step. Compute the loss as a sum over the examples of this process. If you need the gradients
/// of a mean, divide the gradients after `sum`.
class bucket {
public:
  /// Replaces the gradients of `parameters` by views. Parameters without `requires_grad` are ignored. Call `module->to(...)` before this
  /// constructor, not after it: the views have the element type and the device that the parameters have now.
  /// @errors   `invalid_argument_error` for a parameter that is undefined, sparse, on another device than the first one, or not of a
  ///           floating-point type, such as a complex parameter, and for a parameter that occurs twice.
  /// @lifetime The bucket shares the ownership of the tensors.
  explicit bucket(std::vector<at::Tensor> parameters);

  /// Sets all gradients to zero. Restores views that were replaced, for example by `optimizer.zero_grad()`.
  void zero();
  /// Replaces each gradient by its sum over the processes of `all`. Gradients on a device are copied to the host and back, unless NCCL adds them on
  /// the GPU.
  /// @errors Those of `group::sum`. `failed_precondition_error` if a gradient is no view any more: something has replaced it since `zero`.
  void sum(group& all);
  /// Returns the flat tensors: one for each element type, in the order in which the types first occur among the parameters.
  [[nodiscard]] const std::vector<at::Tensor>& tensors() const noexcept { return flat_; }

private:
  std::vector<at::Tensor> parameters_;
  std::vector<at::Tensor> views_;  // of each parameter
  std::vector<at::Tensor> flat_;
};

}  // namespace stepwell::libtorch
