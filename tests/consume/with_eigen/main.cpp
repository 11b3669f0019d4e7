// SPDX-License-Identifier: Apache-2.0
//
// Lists a matrix as a variable, with the installed adapter.
#include <stepwell/eigen/eigen.hpp>

#include <cstdio>

int main() {
  Eigen::Matrix<float, 2, 3, Eigen::RowMajor> weights;
  const auto named = stepwell::variables({{"weights", weights}});
  std::printf("%s %s\n", named[0].name().c_str(), stepwell::to_string(named[0].shape()).c_str());
  return stepwell::to_string(named[0].shape()) == "[2,3]" ? 0 : 1;
}
