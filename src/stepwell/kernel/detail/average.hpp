// SPDX-License-Identifier: Apache-2.0
//
// One step of an exponential moving average of arrays.
#pragma once

#include <span>

namespace stepwell::kernel {

/// Computes average += weight * (value - average) for each element. NaN and infinities follow floating-point arithmetic. Any alignment.
/// @pre  `averages` and `values` have the same size and do not overlap.
/// @cost O(n), one pass.
void move_towards(std::span<float> averages, std::span<const float> values, float weight) noexcept;
void move_towards(std::span<double> averages, std::span<const double> values, double weight) noexcept;

}  // namespace stepwell::kernel
