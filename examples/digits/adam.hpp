// SPDX-License-Identifier: Apache-2.0
//
// Adam (Kingma and Ba, 2015) in TensorFlow's form: two slots for each parameter, two powers shared by all parameters.
#pragma once

#include <span>

namespace digits {

/// The state of Adam besides the slots. The powers are part of a checkpoint; the user sets the rates.
struct adam {
  float learning_rate = 1e-3F;
  float beta1 = 0.9F;
  float beta2 = 0.999F;
  float epsilon = 1e-8F;

  float beta1_power = beta1;  // beta1 to the power of the next step's number (from 1)
  float beta2_power = beta2;

  /// Updates `values` once with `gradient`. All four spans have the same size.
  void update(std::span<float> values, std::span<const float> gradient, std::span<float> first_moment,
              std::span<float> second_moment) const;

  /// Updates the powers. Called once after all updates of a step.
  void next_step();
};

}  // namespace digits
