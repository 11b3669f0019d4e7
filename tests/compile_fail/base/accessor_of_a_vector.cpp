// expect: stepwell: the function that reads a variable must return a string, a number or an array of numbers
// SPDX-License-Identifier: Apache-2.0
#include <stepwell/base/variable.hpp>

#include <vector>

int main() {
  std::vector<double> values;
  const stepwell::variable_ref variable("values", [&] { return values; }, [&](const std::vector<double>& restored) { values = restored; });
  return static_cast<int>(variable.name().size());
}
