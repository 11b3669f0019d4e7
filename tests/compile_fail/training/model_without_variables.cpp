// expect: stepwell: a model is a class with step(...) and variables()
// SPDX-License-Identifier: Apache-2.0
#include <stepwell/training/monitored_training_session.hpp>

struct forgetful {
  float weight = 0;

  float step() { return weight += 1; }
};

int main() {
  forgetful model;
  auto session = stepwell::monitored_training_session(model, {.checkpoint_dir = "run"});
}
