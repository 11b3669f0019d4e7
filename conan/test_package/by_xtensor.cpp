// SPDX-License-Identifier: Apache-2.0
#include <stepwell/xtensor/xtensor.hpp>

#include <cstdio>

int main() {
  xt::xtensor<float, 2> weights({2, 3});
  const auto named = stepwell::variables({{"weights", weights}});
  std::printf("%s %s\n", named[0].name().c_str(), stepwell::to_string(named[0].shape()).c_str());
  return stepwell::to_string(named[0].shape()) == "[2,3]" ? 0 : 1;
}
