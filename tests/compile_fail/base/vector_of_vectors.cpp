// expect: stepwell: this type cannot be a variable
// SPDX-License-Identifier: Apache-2.0
#include <stepwell/base/variable.hpp>

#include <vector>

int main() {
  std::vector<std::vector<float>> rows;
  return static_cast<int>(stepwell::variables({{"rows", rows}}).size());
}
