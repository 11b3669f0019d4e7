// SPDX-License-Identifier: Apache-2.0
//
// Lists the parameters of a module as variables, with the installed adapter.
#include <stepwell/torch/torch.hpp>

#include <torch/nn/modules/linear.h>

#include <cstdio>

int main() {
  const torch::nn::Linear layer(3, 2);
  const auto named = stepwell::libtorch::variables(*layer);
  std::printf("%s %s\n", named.at(0).name().c_str(), stepwell::to_string(named[0].shape()).c_str());
  return named[0].name() == "weight" && stepwell::to_string(named[0].shape()) == "[2,3]" ? 0 : 1;
}
