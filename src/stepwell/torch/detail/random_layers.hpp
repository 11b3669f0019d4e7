// SPDX-License-Identifier: Apache-2.0
//
// Private to torch: modules that draw random numbers.
#pragma once

namespace torch::nn {
class Module;
}  // namespace torch::nn

namespace stepwell::libtorch::detail {

/// Logs a warning, once for each module, if the module draws random numbers in training mode and `rng()` was not called since this function was
/// last called for the module. A model that lists both calls `rng()` between two lists of the module.
void warn_without_generator(const ::torch::nn::Module& module);

}  // namespace stepwell::libtorch::detail
