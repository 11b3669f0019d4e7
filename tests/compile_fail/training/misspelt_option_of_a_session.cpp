// expect: Write training_options{...}: the compiler then names the wrong option
// SPDX-License-Identifier: Apache-2.0
// at most: 4000 bytes
#include "support/toy_model.hpp"

#include <stepwell/training/monitored_training_session.hpp>

int main() {
  stepwell::test::adding_model model;
  auto session = stepwell::monitored_training_session(model, {.checkpoint_directory = "run"});  // the member is checkpoint_dir
}
