// SPDX-License-Identifier: Apache-2.0
//
// Writes the weights of a model for programs in Python.
#pragma once

#include "stepwell/base/variable.hpp"
#include "stepwell/creation/init_from_weights.hpp"

#include <memory>
#include <string>

namespace stepwell {

/// Writes variables to a file of safetensors, which `safetensors.torch.load_file` and `init_from_safetensors` read. `names` has the rules of
/// `init_from_weights`, in the other direction. With the defaults, "conv1/weight" is "conv1.weight" in the file. An existing file is replaced
/// when the new one is complete and durable.
///
///     save_safetensors(libtorch::variables(*net), "net.safetensors");
///     save_safetensors(model.variables(), "net.safetensors", {.prefix = "net/"});  // only those variables, without this prefix
///
/// @errors `invalid_argument_error` if safetensors cannot hold a variable, such as strings, if two variables have the same name in the file, or
///         if a pair names a variable that does not exist. Errors of the file system. Errors of a device.
/// @cost   One copy of the variables in memory.
void save_safetensors(const variable_list& variables, const std::string& file, const weight_names& names = {},
                      std::shared_ptr<io::file_system> file_system = nullptr);

}  // namespace stepwell
