// SPDX-License-Identifier: Apache-2.0
//
// The model that both translation units train.
#pragma once

#include <stepwell/stepwell.hpp>

#include <cstdint>
#include <vector>

namespace sw = stepwell;

/// A model that fits weights to a target with random noise. The state after every step therefore depends on all
/// previous steps.
struct shaken {
  std::vector<double> weights = std::vector<double>(10);
  sw::random_stream random{3};

  struct result {
    double loss;
  };

  result step(double target) {
    double loss = 0;
    for (double& weight : weights) {
      const double error = weight - target - random.uniform();
      weight -= 0.1 * error;
      loss += error * error;
    }
    return {loss};
  }
  auto variables() {
    auto drawn = random.state();
    return sw::variables({{"weights", weights}, {"random", drawn}});
  }
};

/// Returns the loss of step number `steps`. Defined in other.cpp.
double loss_after(std::int64_t steps);
