// SPDX-License-Identifier: Apache-2.0
//
// A guard for code that runs a module without training it, such as a summary or an evaluation.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace torch::nn {
class Module;
}  // namespace torch::nn

namespace stepwell::libtorch {

/// While this object exists, the module and its submodules are in evaluation mode, and no gradients are recorded. The destructor restores the
/// mode of each submodule, and the states of LibTorch's random generators. Code in its scope therefore has no effect on the training, so that a
/// resumed run gives the same bits as an uninterrupted one:
///
///     sw::summary::image("samples", [noise](const trainee& now) {
///       const sw::libtorch::evaluating guard(*now.generator);
///       return now.generator.ptr()->forward<torch::Tensor>(noise);
///     }, {.layout = sw::summary::image_layout::nchw, .black = -1})
///
/// @lifetime The module must outlive this object.
/// @threads  The thread that trains. Other threads may not use the module, or draw from LibTorch's generators, at the same time.
class [[nodiscard]] evaluating {
public:
  explicit evaluating(const ::torch::nn::Module& module);
  evaluating(evaluating&&) = delete;
  ~evaluating();

private:
  at::NoGradGuard without_gradients_;
  std::vector<std::pair<::torch::nn::Module*, bool>> modes_;  // from the outer module to the inner ones
  std::vector<at::Tensor> random_states_;
};

}  // namespace stepwell::libtorch
