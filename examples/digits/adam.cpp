// SPDX-License-Identifier: Apache-2.0
#include "adam.hpp"

#include <cmath>
#include <cstddef>

namespace digits {
namespace {

/// Returns zero for moments below 1e-30. Moments of rarely used weights decay towards zero forever; computing with
/// subnormal numbers would make each step about a hundred times slower without changing the result.
float faded(float moment) { return std::abs(moment) < 1e-30F ? 0.0F : moment; }

}  // namespace

void adam::update(std::span<float> values, std::span<const float> gradient, std::span<float> first_moment,
                  std::span<float> second_moment) const {
  // Local copies, because the compiler must assume that a store through a span of floats changes a member.
  const float rate = learning_rate * std::sqrt(1.0F - beta2_power) / (1.0F - beta1_power);
  const float first_weight = 1.0F - beta1;
  const float second_weight = 1.0F - beta2;
  const float tiny = epsilon;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const float slope = gradient[i];
    first_moment[i] = faded(first_moment[i] + (slope - first_moment[i]) * first_weight);
    second_moment[i] = faded(second_moment[i] + (slope * slope - second_moment[i]) * second_weight);
    values[i] -= rate * first_moment[i] / (std::sqrt(second_moment[i]) + tiny);
  }
}

void adam::next_step() {
  beta1_power = faded(beta1_power * beta1);
  beta2_power = faded(beta2_power * beta2);
}

}  // namespace digits
