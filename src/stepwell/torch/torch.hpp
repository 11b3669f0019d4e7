// SPDX-License-Identifier: Apache-2.0
//
// Adapter for LibTorch: the parameters and buffers of a module and the state of its optimiser as variables, and tensors as fetches,
// also for summaries and NaN checks. Link `stepwell::torch`. The namespace is `libtorch`, because LibTorch uses `torch`.
#pragma once

#include "stepwell/base/tensor.hpp"
#include "stepwell/base/variable.hpp"
#include "stepwell/checkpoint/update_fence.hpp"

#include <ATen/core/Tensor.h>

#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace torch::nn {
class Module;
}  // namespace torch::nn
namespace torch::optim {
class Optimizer;
class LRScheduler;
}  // namespace torch::optim
namespace torch::jit {
struct Module;
}  // namespace torch::jit

namespace stepwell {

/// Adapter for dense tensors. A variable of a row-major tensor on the CPU refers to the memory of the tensor. The elements of any other
/// tensor are copied for each snapshot, and copied back in each restore.
template<>
struct tensor_adapter<at::Tensor> {
  static constexpr bool is_writable = true;
  static constexpr bool is_borrowed = true;

  /// Returns a view of the elements.
  /// @errors `invalid_argument_error` for a tensor that is undefined, not on the CPU, sparse, not contiguous, or of an element
  ///         type that a checkpoint cannot hold. The message names the reason and, if there is one, the remedy.
  static tensor_view view(const at::Tensor& value);
  /// Returns an object that copies a tensor that is not on the CPU, or not in row-major order (for example `channels_last`). Returns null
  /// for all other tensors. A device with streams and events copies on a stream of its own, and the host does not wait for it before the copy
  /// is written to a file. Any other copy waits for the current stream of the device. Averages are computed on the device.
  /// @errors A failure of a copy is an `internal_error`.
  static std::shared_ptr<device_elements> on_device(const at::Tensor& value);
  /// Returns the storage of the elements. A snapshot holds the storage until it is copied. A step may therefore assign another tensor to a
  /// listed variable at any time.
  static std::shared_ptr<const void> owner(const at::Tensor& value);
  /// Returns the element of a tensor with one element, from any device. Blocks until the device has computed the element. Hooks therefore
  /// call this function only after the runs whose value they need.
  /// @errors `invalid_argument_error` for a tensor that is undefined, has another number of elements, or is complex. `internal_error` for a
  ///         failure of the device.
  static double number(const at::Tensor& value);
  /// Returns true if an element of a tensor that is not on the CPU, or not in row-major order, is NaN, or infinite unless `nan_only` is
  /// true. LibTorch looks at the elements, and one boolean is copied to the host. Returns an empty value for any other tensor: a NaN guard
  /// then reads `view(value)`.
  /// @errors A failure of the device is an `internal_error`.
  static std::optional<bool> any_bad_on_device(const at::Tensor& value, bool nan_only);
};

namespace libtorch {

/// Returns the parameters of a module, and after them its buffers. Each dot in a name is replaced by `/`: "conv1/weight". Buffers, such as
/// running means, are `early()` (copied before the next step begins), because the forward pass changes them.
/// @errors   `invalid_argument_error` like `tensor_adapter<at::Tensor>::view`, naming the variable.
/// @lifetime Refers to the memory of the tensors: create the module and move it to its device and type before this call.
///
/// If a step draws random numbers from LibTorch's default generators, as dropout does in training mode, list `rng()`, too. If this function is
/// called twice for the module without a call of `rng()` in between, a warning names a layer that draws numbers, or the generator from which
/// numbers were drawn between the calls.
[[nodiscard]] variable_list variables(const ::torch::nn::Module& module);
/// Like the function above, for a module that `torch::jit::load` returned.
[[nodiscard]] variable_list variables(const ::torch::jit::Module& module);

/// Returns the states of LibTorch's random generators: "cpu", and "cuda0", "mps0", "xpu0", ... for each device of CUDA, MPS and XPU. Dropout, `torch::randn` and
/// other functions without a generator of their own draw from them. If the model lists these states in its variables, a resumed run draws
/// the same numbers as an uninterrupted run. The variables of devices are optional.
[[nodiscard]] variable_list rng();

/// Returns the state of an optimiser. Each name begins with the name of a parameter of the module: "conv1/weight/exp_avg".
///
///     Adam, AdamW   step, exp_avg, exp_avg_sq; with amsgrad also: max_exp_avg_sq
///     Adagrad       step, sum
///     RMSprop       step, square_avg; with momentum also: momentum_buffer; if centered also: grad_avg
///     SGD           with momentum: momentum_buffer; with momentum and dampening also: has_momentum
///     LBFGS         one state for all parameters, whose names have no such prefix: func_evals, n_iter, t, prev_loss, d, H_diag,
///                   prev_flat_grad, old_dirs, old_stps, ro, history
///
/// The options of each parameter group that are numbers, such as the learning rate, are included: "param_groups/0/lr". A restore changes the
/// options of the optimiser, and logs these changes. The names of the parameters of each group are included, too. If an optimiser lacks
/// parameters of the optimiser that was saved, a warning names them. If a checkpoint lacks the options, the restore keeps them. LibTorch
/// creates the state of an optimiser in the first step. If
/// the state does not exist yet, this function creates the same state, so that the state can be restored before the first step.
/// @errors   `invalid_argument_error` if a parameter does not belong to the module; the message has the shape of the parameter and its
///           place in the optimiser. `invalid_argument_error` for any other type of optimiser.
/// @lifetime The list refers to the memory of the tensors and to the optimiser. The optimiser must outlive the list.
///           A restore throws `invalid_argument_error` if an option differs that decides which state there is, such as `amsgrad`.
/// @cost     For LBFGS, each snapshot contains `history_size` old directions and steps, even while the optimiser has fewer.
[[nodiscard]] variable_list variables(::torch::optim::Optimizer& optimizer, const ::torch::nn::Module& module);

/// Parameters of an optimiser, and the name under which their state is saved.
class named_parameters {
public:
  /// All parameters of a module. Their names begin with `name` and "/".
  named_parameters(const std::string& name, const ::torch::nn::Module& module);
  named_parameters(const std::string& name, const ::torch::jit::Module& module);
  /// One tensor.
  named_parameters(std::string name, at::Tensor parameter) : tensors_{{std::move(name), std::move(parameter)}} {}

  [[nodiscard]] const std::vector<std::pair<std::string, at::Tensor>>& tensors() const noexcept { return tensors_; }

private:
  std::vector<std::pair<std::string, at::Tensor>> tensors_;
};
/// Like the function above, for an optimiser of several modules, or of tensors: `variables(optimizer, {{"encoder", *encoder}, {"scale", scale}})`.
[[nodiscard]] variable_list variables(::torch::optim::Optimizer& optimizer, std::initializer_list<named_parameters> parameters);

/// Returns the state of a scheduler that computes the learning rate from the number of its steps, such as `torch::optim::StepLR`: the number
/// "step_count". The rate itself is an option of the optimiser, so list the optimiser, too.
/// @lifetime The scheduler must outlive the list.
[[nodiscard]] variable_list variables(::torch::optim::LRScheduler& scheduler);

/// Waits at `fence` until a pending snapshot is copied, then calls `optimizer.step()`. If a step of the model changes the parameters only
/// by this call, the snapshot for a due checkpoint is copied during the forward and the backward pass. For an optimiser with a closure,
/// call `fence.wait()` and then `optimizer.step(closure)` instead of this function.
/// @errors Those of `update_fence::wait` and of the optimiser.
void step(::torch::optim::Optimizer& optimizer, update_fence& fence);

}  // namespace libtorch
}  // namespace stepwell
