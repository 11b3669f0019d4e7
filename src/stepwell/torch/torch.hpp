// SPDX-License-Identifier: Apache-2.0
//
// LibTorch: the parameters and buffers of a module and the state of its optimiser as variables, tensors as what is fetched,
// summed up and watched for NaN. Link `stepwell::torch`. (The namespace is `libtorch`, as `torch` is taken.)
#pragma once

#include "stepwell/base/tensor.hpp"
#include "stepwell/base/tensor_adapter.hpp"
#include "stepwell/base/variable.hpp"

#include <ATen/core/Tensor.h>

#include <memory>

namespace torch::nn {
class Module;
}  // namespace torch::nn
namespace torch::optim {
class Optimizer;
}  // namespace torch::optim

namespace stepwell {

/// A dense tensor. One on the CPU whose elements lie in row-major order is referred to. A variable of any other is copied for each
/// snapshot, and back for each restore.
template<>
struct tensor_adapter<at::Tensor> {
  static constexpr bool is_writable = true;
  static constexpr bool is_borrowed = true;

  /// @errors `invalid_argument_error` for a tensor that is undefined, on another device, sparse, not contiguous, or of elements that
  /// a checkpoint cannot hold, saying which and what to do.
  static tensor_view view(const at::Tensor& value);
  /// Copies of a tensor on another device or in another order, such as `channels_last`; null for all others. Copying waits for
  /// the current stream of that device. Its failures are `internal_error`.
  static std::shared_ptr<device_elements> on_device(const at::Tensor& value);
};

namespace libtorch {

/// Parameters, then buffers, by their names with `/` for each dot: "conv1/weight".
/// @errors   `invalid_argument_error` as `tensor_adapter<at::Tensor>::view`, naming the variable.
/// @lifetime Refers to the tensors' memory: build and move the module to its type first.
[[nodiscard]] variable_list variables(const ::torch::nn::Module& module);

/// The state of an optimiser, below the name of each of the module's parameters: "conv1/weight/exp_avg".
///
///     Adam, AdamW   step, exp_avg, exp_avg_sq; with amsgrad max_exp_avg_sq
///     Adagrad       step, sum
///     RMSprop       step, square_avg; with momentum momentum_buffer; if centered grad_avg
///     SGD           with momentum momentum_buffer; with dampening has_momentum, too
///     LBFGS         one state for all parameters, without a name before it: func_evals, n_iter, t, prev_loss, d, H_diag,
///                   prev_flat_grad, old_dirs, old_stps, ro, history
///
/// Options, such as the learning rate, are not among them. LibTorch makes that state at the first step; to be restored before, it is
/// made here, as it would be there.
/// @errors   `invalid_argument_error` for a parameter that is none of the module's, and for an optimiser of another type.
/// @lifetime As above; the optimiser must outlive it.
/// @cost     LBFGS: each snapshot holds `history_size` old directions and steps, also while there are fewer.
[[nodiscard]] variable_list variables(::torch::optim::Optimizer& optimizer, const ::torch::nn::Module& module);

}  // namespace libtorch
}  // namespace stepwell
