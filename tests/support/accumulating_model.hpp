// SPDX-License-Identifier: Apache-2.0
//
// A model that counts its steps itself, such as one that accumulates gradients over several batches.
#pragma once

#include <stepwell/base/variable.hpp>

#include <cstdint>

namespace stepwell::test {

/// Each step has four runs. The loss is the number of runs.
struct accumulating_model {
  struct result {
    double loss = 0;
  };

  std::int64_t step_count = 0;
  int runs = 0;

  std::int64_t& global_step() { return step_count; }
  result step() {
    if (++runs % 4 == 0) { ++step_count; }
    return {static_cast<double>(runs)};
  }
  variable_list variables() { return stepwell::variables({{"runs", runs}}); }
};

}  // namespace stepwell::test
