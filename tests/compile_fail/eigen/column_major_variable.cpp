// expect: stepwell: this Eigen matrix is column-major, and a checkpoint is row-major: declare it with Eigen::RowMajor
// SPDX-License-Identifier: Apache-2.0
#include <stepwell/eigen/eigen.hpp>

int main() {
  Eigen::MatrixXf weights(2, 3);
  return static_cast<int>(stepwell::variables({{"weights", weights}}).size());
}
