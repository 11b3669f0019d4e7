// SPDX-License-Identifier: Apache-2.0
//
// Adam (Kingma and Ba, 2015), in TensorFlow's form: two slots a parameter, two powers for all of them.
#pragma once

#include <span>

namespace digits {

/// What Adam knows besides the slots. The powers are part of a checkpoint; the rates are the user's.
struct adam {
  float learning_rate = 1e-3F;
  float beta1 = 0.9F;
  float beta2 = 0.999F;
  float epsilon = 1e-8F;

  float beta1_power = beta1;  // beta1 to the power of the step to come, counted from one
  float beta2_power = beta2;

  /// One update of `values` against `gradient`. All four spans have the same size.
  void update(std::span<float> values, std::span<const float> gradient, std::span<float> first_moment,
              std::span<float> second_moment) const;

  /// To be called once after all updates of a step.
  void next_step();
};

}  // namespace digits
