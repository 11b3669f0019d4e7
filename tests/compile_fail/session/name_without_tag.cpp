// expect: stepwell: this session cannot read the fetch
// SPDX-License-Identifier: Apache-2.0
#include <stepwell/stepwell.hpp>

struct counter {
  int steps = 0;
  int step() { return ++steps; }
  stepwell::variable_list variables() { return stepwell::variables({{"steps", steps}}); }
};

int main() {
  counter model;
  auto session = stepwell::monitored_training_session(model, {}, stepwell::log_every(10, "steps", &counter::steps));
  session.run_all();
}
