// SPDX-License-Identifier: Apache-2.0
//
// Private to torch: LibTorch's default random generators.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace stepwell::libtorch::detail {

struct named_generator {
  std::string name;  // "cpu", "cuda0", "mps0", ...
  at::Generator generator;
};
/// Returns the default generators of the CPU and of each device of CUDA, MPS and XPU.
[[nodiscard]] std::vector<named_generator> generators();

[[nodiscard]] at::Tensor state_of(at::Generator generator);
[[nodiscard]] std::uint64_t seed_of(at::Generator generator);
void set_state(at::Generator generator, const at::Tensor& state);

}  // namespace stepwell::libtorch::detail
