// SPDX-License-Identifier: Apache-2.0
//
// Private to torch: modules that draw random numbers.
#pragma once

#include "stepwell/base/detail/function_ref.hpp"

#include <string>

namespace torch::nn {
class Module;
}  // namespace torch::nn

namespace stepwell::libtorch::detail {

/// Returns the name and the type of a layer that draws random numbers in training mode, or an empty text if no layer is known to do so.
[[nodiscard]] std::string random_layer(const ::torch::nn::Module& module);

/// Notes that the variables of a module were listed. Logs a warning, once for each module, if the model draws random numbers and `rng()` was not
/// called since the last call for the module: if `find_layer` names a layer, or if a default generator has another state than at that call, and
/// was not seeded since then. `is_on_cpu`: only the generator of the CPU is looked at. A model that lists both calls `rng()` between two lists of
/// the module.
/// @cost The states of generators are compared for the first few lists only.
void warn_without_generator(const void* module, bool is_on_cpu, function_ref<std::string()> find_layer);

/// Notes that the program makes the states of the generators reproducible, like a call of `rng()`.
void note_generators();

}  // namespace stepwell::libtorch::detail
