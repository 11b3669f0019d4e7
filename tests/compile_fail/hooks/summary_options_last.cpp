// expect: stepwell: summary_saver_hook takes its options first
// SPDX-License-Identifier: Apache-2.0
#include <stepwell/stepwell.hpp>

struct result {
  float loss;
};

void write_values() {
  [[maybe_unused]] stepwell::summary_saver_hook hook{stepwell::summary::scalar("loss", &result::loss), {.output_dir = "run"}};
}
