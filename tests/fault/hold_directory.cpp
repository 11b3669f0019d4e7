// SPDX-License-Identifier: Apache-2.0
//
// hold_directory DIRECTORY: trains in a directory, prints "holding", and keeps the directory until its input ends. If
// another process holds the directory, it prints the reason and exits with code 3.
#include "support/toy_model.hpp"

#include <stepwell/base/error.hpp>
#include <stepwell/training/monitored_training_session.hpp>

#include <cstdio>

int main(int count, char** words) {
  if (count != 2) { return 2; }
  try {
    stepwell::test::counting_model model;
    auto session = stepwell::monitored_training_session(model, {.checkpoint_dir = words[1], .saves = {.save_steps = 1}});
    session.run();
    std::puts("holding");
    std::fflush(stdout);
    while (std::getchar() != EOF) {}
    session.close();
    return 0;
  } catch (const stepwell::failed_precondition_error& refused) {
    std::puts(refused.what());
    return 3;
  }
}
