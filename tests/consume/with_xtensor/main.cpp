// SPDX-License-Identifier: Apache-2.0
//
// Lists a container and a view as variables, with the installed adapter.
#include <stepwell/xtensor/xtensor.hpp>

#include <cstdio>

int main() {
  xt::xtensor<float, 2> weights({2, 3});
  const auto named = stepwell::variables({{"weights", weights}, {"column", xt::view(weights, xt::all(), 1)}});
  std::printf("%s %s\n", named[1].name().c_str(), stepwell::to_string(named[1].shape()).c_str());
  return stepwell::to_string(named[0].shape()) == "[2,3]" && stepwell::to_string(named[1].shape()) == "[2]" ? 0 : 1;
}
