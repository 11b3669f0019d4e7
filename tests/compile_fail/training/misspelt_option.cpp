// expect: checkpoint_directory
// SPDX-License-Identifier: Apache-2.0
#include <stepwell/session/training_options.hpp>

int main() {
  const stepwell::training_options options{.checkpoint_directory = "run"};  // the member is checkpoint_dir
}
