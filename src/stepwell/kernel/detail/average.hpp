// SPDX-License-Identifier: Apache-2.0
//
// One step of a moving average over many numbers.
#pragma once

#include <span>

namespace stepwell::kernel {

/// average += weight * (value - average), for each element; NaN and infinities go the way of arithmetic. Any alignment.
/// @pre  Both have the same size, and do not overlap.
/// @cost O(n), one pass.
void move_towards(std::span<float> averages, std::span<const float> values, float weight) noexcept;
void move_towards(std::span<double> averages, std::span<const double> values, double weight) noexcept;

}  // namespace stepwell::kernel
