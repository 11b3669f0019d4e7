// expect: stepwell: a hook was given by pointer; give the hook itself, or std::ref(hook)
// SPDX-License-Identifier: Apache-2.0
// names: my_hook
#include <stepwell/stepwell.hpp>

struct counter {
  int step() { return 0; }
  stepwell::variable_list variables() { return {}; }
};

struct my_hook {
  void begin() {}
};

int main() {
  counter model;
  my_hook hook;
  auto session = stepwell::monitored_training_session(model, {}, &hook);
}
