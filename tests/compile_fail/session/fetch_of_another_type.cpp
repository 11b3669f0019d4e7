// expect: stepwell: this session cannot read a value that this hook fetches
// SPDX-License-Identifier: Apache-2.0
// names: stepwell::nan_tensor_hook<float other_result::*>
#include <stepwell/stepwell.hpp>

struct other_result {
  float loss;
};

struct counter {
  int step() { return 0; }
  stepwell::variable_list variables() { return {}; }
};

int main() {
  counter model;
  auto session = stepwell::monitored_training_session(model, {}, stepwell::nan_tensor_hook{&other_result::loss});
  session.run_all();
}
