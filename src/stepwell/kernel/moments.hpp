// SPDX-License-Identifier: Apache-2.0
//
// Statistics of arrays, computed in one pass.
#pragma once

#include <cstdint>
#include <limits>
#include <span>

namespace stepwell::kernel {

/// Statistics of the finite values. NaN and infinities are counted in `nonfinite` only.
/// Without a finite value `min` is the greatest double and `max` the lowest double, as in the files of TensorFlow.
struct moments_of_values {
  double min = std::numeric_limits<double>::max();
  double max = std::numeric_limits<double>::lowest();
  double sum = 0;
  double sum_squares = 0;
  std::uint64_t count = 0;      ///< Number of finite values.
  std::uint64_t nonfinite = 0;  ///< Number of NaN and infinite values.
};

/// Returns the statistics of `values`. Any alignment. The sums are doubles and may overflow to infinity.
/// The order of the additions depends on the vector width of the machine only. The last bits may therefore differ between kinds of
/// machines, but not between runs.
/// @cost O(n), one pass.
[[nodiscard]] moments_of_values moments(std::span<const float> values) noexcept;
[[nodiscard]] moments_of_values moments(std::span<const double> values) noexcept;

}  // namespace stepwell::kernel
