// SPDX-License-Identifier: Apache-2.0
//
// The smallest models with which the behaviour of a session can be observed.
#pragma once

#include <stepwell/base/error.hpp>
#include <stepwell/base/variable.hpp>

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

namespace stepwell::test {

/// A model that adds each batch to a sum; the loss is the sum.
struct adding_model {
  struct result {
    float loss;
    std::int64_t batch;
  };

  float sum = 0;
  std::vector<float> weights = {1, 2, 3};
  /// Called with the batch before the model changes. May throw.
  std::function<void(std::int64_t)> before = nullptr;

  result step(const std::int64_t& batch) {
    if (before) { before(batch); }
    sum += static_cast<float>(batch);
    for (auto& weight : weights) { weight += 1; }
    return {sum, batch};
  }
  variable_list variables() { return stepwell::variables({{"sum", sum}, {"weights", weights}}); }
};

/// A model that needs no data: it counts its own steps.
struct counting_model {
  using result = int;

  int count = 0;

  int step() { return ++count; }
  variable_list variables() { return stepwell::variables({{"count", count}}); }
};

}  // namespace stepwell::test
