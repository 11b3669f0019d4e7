// SPDX-License-Identifier: Apache-2.0
//
// The two histograms of TensorFlow. The buckets of TF1 come from a fixed list in which each limit is 1.1 times the previous one. Those of
// TF2 are k buckets of equal width. Both count the finite values only; `stats.nonfinite` counts the others.
#pragma once

#include "stepwell/kernel/moments.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace stepwell::kernel {

/// Returns the 1551 limits of TF1 in ascending order: the lowest double, ..., -1e-12, 0, 1e-12, ..., the greatest double.
[[nodiscard]] std::span<const double> histogram_limits();

/// A histogram as TF1 writes it. Consecutive empty buckets are merged into one bucket with the limit of the last of them.
struct growing_histogram {
  moments_of_values stats;
  std::vector<double> limits;  ///< Right edge of each bucket, exclusive. The last one is the greatest double.
  std::vector<double> counts;  ///< Number of values in each bucket. The sum is `stats.count`.
};

/// Returns the TF1 histogram of the finite values.
[[nodiscard]] growing_histogram make_growing_histogram(std::span<const float> values);
[[nodiscard]] growing_histogram make_growing_histogram(std::span<const double> values);

/// One bucket of a TF2 histogram: three doubles in the order of the file format.
struct equal_bucket {
  double left = 0;
  double right = 0;
  double count = 0;
};

/// A histogram as TF2 writes it: `k` buckets of equal width from the least to the greatest finite value.
/// Without finite values all buckets are zero. If all values are equal, both edges of each bucket are that value, and the last bucket
/// counts all values.
struct equal_histogram {
  moments_of_values stats;
  std::vector<equal_bucket> buckets;
};

/// Returns the TF2 histogram of the finite values, with `k` buckets. @pre `k` is at least 1.
[[nodiscard]] equal_histogram make_equal_histogram(std::span<const float> values, std::size_t k = 30);
[[nodiscard]] equal_histogram make_equal_histogram(std::span<const double> values, std::size_t k = 30);

}  // namespace stepwell::kernel
