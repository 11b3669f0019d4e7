// expect: stepwell: logging_tensor_hook takes its options first
// SPDX-License-Identifier: Apache-2.0
#include <stepwell/stepwell.hpp>

struct result {
  float loss, accuracy;
};

void log_values() { [[maybe_unused]] stepwell::logging_tensor_hook hook{&result::loss, &result::accuracy, {.every_n_iter = 100}}; }
