// SPDX-License-Identifier: Apache-2.0
//
// What one look over many numbers can say of them.
#pragma once

#include <cstdint>
#include <limits>
#include <span>

namespace stepwell::kernel {

/// Of the finite values: NaN and infinities are counted in `nonfinite` and left out of all else.
/// Without a finite value `min` is the greatest double and `max` the lowest, as TensorFlow writes it.
struct moments_of_values {
  double min = std::numeric_limits<double>::max();
  double max = std::numeric_limits<double>::lowest();
  double sum = 0;
  double sum_squares = 0;
  std::uint64_t count = 0;      ///< Finite values.
  std::uint64_t nonfinite = 0;  ///< The others.
};

/// One pass. Sums are double, in an order that depends on the machine's vector width only (so the last bits may differ
/// between kinds of machines, never between runs); they may overflow to infinity. Any alignment.
/// @cost O(n).
[[nodiscard]] moments_of_values moments(std::span<const float> values) noexcept;
[[nodiscard]] moments_of_values moments(std::span<const double> values) noexcept;

}  // namespace stepwell::kernel
