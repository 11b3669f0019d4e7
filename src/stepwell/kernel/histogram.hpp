// SPDX-License-Identifier: Apache-2.0
//
// TensorFlow's two histograms: buckets that grow by a tenth from a fixed list (TF1), and k equal ones (TF2).
// Both are of the finite values; the others are counted in `stats.nonfinite`.
#pragma once

#include "stepwell/kernel/moments.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace stepwell::kernel {

/// The 1551 limits of TF1, ascending: the lowest double, ..., -1e-12, 0, 1e-12, ..., the greatest double.
[[nodiscard]] std::span<const double> histogram_limits();

/// A histogram as TF1 writes it: runs of empty buckets are folded into one at the run's last limit.
struct growing_histogram {
  moments_of_values stats;
  std::vector<double> limits;  ///< Right edge of each bucket, exclusive; the last is the greatest double.
  std::vector<double> counts;  ///< As many; they sum to `stats.count`.
};

[[nodiscard]] growing_histogram make_growing_histogram(std::span<const float> values);
[[nodiscard]] growing_histogram make_growing_histogram(std::span<const double> values);

/// One bucket of a TF2 histogram: three doubles, as they stand in the file.
struct equal_bucket {
  double left = 0;
  double right = 0;
  double count = 0;
};

/// A histogram as TF2 writes it: `k` buckets of one width from the least value to the greatest.
/// No values: `k` rows of zeros. All the same: `k` rows with both edges there, everything counted in the last.
struct equal_histogram {
  moments_of_values stats;
  std::vector<equal_bucket> buckets;
};

/// @pre `k` is at least 1.
[[nodiscard]] equal_histogram make_equal_histogram(std::span<const float> values, std::size_t k = 30);
[[nodiscard]] equal_histogram make_equal_histogram(std::span<const double> values, std::size_t k = 30);

}  // namespace stepwell::kernel
