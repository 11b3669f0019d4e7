// expect: stepwell: a NaN guard watches numbers and tensors of numbers, but the elements of this range are not numbers; give it another value
// SPDX-License-Identifier: Apache-2.0
#include <stepwell/hooks/nan_hooks.hpp>
#include <stepwell/model/model_session.hpp>

#include <string>
#include <vector>

struct labeller {
  std::vector<std::string> labels = {"a", "b"};
  double weight = 0;

  void step() {}
  stepwell::variable_list variables() { return stepwell::variables({{"weight", weight}}); }
};

int main() {
  labeller model;
  stepwell::monitored_session session(model, stepwell::nan_tensor_hook{&labeller::labels});
  session.run();
}
