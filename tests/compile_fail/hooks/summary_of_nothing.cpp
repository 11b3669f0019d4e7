// expect: stepwell: summary_saver_hook has nothing to write
// SPDX-License-Identifier: Apache-2.0
#include <stepwell/hooks/summary_saver_hook.hpp>

int main() {
  const stepwell::summary_saver_options options{.output_dir = "run"};
  stepwell::summary_saver_hook hook{options};
}
