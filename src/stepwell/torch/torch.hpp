// SPDX-License-Identifier: Apache-2.0
//
// LibTorch: the parameters and buffers of a module and the state of its optimiser as variables, tensors as what is fetched,
// summed up and watched for NaN. Link `stepwell::torch`. (The namespace is `libtorch`, as `torch` is taken.)
#pragma once

#include "stepwell/base/tensor.hpp"
#include "stepwell/base/tensor_adapter.hpp"
#include "stepwell/base/variable.hpp"

#include <ATen/core/Tensor.h>

namespace torch::nn {
class Module;
}  // namespace torch::nn
namespace torch::optim {
class Optimizer;
}  // namespace torch::optim

namespace stepwell {

/// A dense tensor on the CPU whose elements lie in row-major order. A handle refers to elements that live elsewhere.
template<>
struct tensor_adapter<at::Tensor> {
  static constexpr bool is_writable = true;
  static constexpr bool is_borrowed = true;

  /// @errors `invalid_argument_error` for a tensor that is undefined, on another device, sparse, not contiguous, or of elements that
  /// a checkpoint cannot hold, saying which and what to do.
  static tensor_view view(const at::Tensor& value);
};

namespace libtorch {

/// Parameters, then buffers, by their names with `/` for each dot: "conv1/weight".
/// @errors   `invalid_argument_error` as `tensor_adapter<at::Tensor>::view`, naming the variable.
/// @lifetime Refers to the tensors' memory: build and move the module to its type first.
[[nodiscard]] variable_list variables(const ::torch::nn::Module& module);

/// What an optimiser remembers of each of the module's parameters, by the parameter's name: of `Adam` and `AdamW`
/// "conv1/weight/step", ".../exp_avg", ".../exp_avg_sq" (".../max_exp_avg_sq" if `amsgrad`), of `SGD` with momentum
/// ".../momentum_buffer". Options, such as the learning rate, are not among them.
///
/// LibTorch makes that state at the first step; to be restored before, it is made here, as it would be there.
/// @errors   `invalid_argument_error` for a parameter that is none of the module's, for momentum with dampening (whose first step is
///           another one), and for other optimisers, naming what is possible.
/// @lifetime As above; the optimiser must outlive it.
[[nodiscard]] variable_list variables(::torch::optim::Optimizer& optimizer, const ::torch::nn::Module& module);

}  // namespace libtorch
}  // namespace stepwell
