// expect: stepwell: uninitialized_variables exists but cannot be used as std::vector<std::string> uninitialized_variables() const
// SPDX-License-Identifier: Apache-2.0
#include <stepwell/stepwell.hpp>

#include <string>
#include <vector>

struct counter {
  int step() { return 0; }
  stepwell::variable_list variables() { return {}; }
  std::vector<std::string> uninitialized_variables() { return {}; }
};

int main() {
  counter model;
  auto session = stepwell::monitored_training_session(model, {});
}
