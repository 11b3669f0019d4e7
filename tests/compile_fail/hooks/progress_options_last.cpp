// expect: stepwell: progress_hook takes its options first
// SPDX-License-Identifier: Apache-2.0
#include <stepwell/stepwell.hpp>

struct result {
  float loss, accuracy;
};

void show_values() { [[maybe_unused]] stepwell::progress_hook hook{&result::loss, &result::accuracy, {.last_step = 100}}; }
