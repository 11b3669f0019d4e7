// SPDX-License-Identifier: Apache-2.0
//
// Private: vectorised arithmetic on arrays: tests for NaN and infinity, moments, the two histograms of TensorFlow, and moving averages. Arrays
// may have any alignment. The functions use the widest vectors of the machine, and return the same bits on all machines. The results are wrong
// if the library is compiled with -ffast-math.
#pragma once

#include "stepwell/base/tensor.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace stepwell::kernel {

/// Returns true if all values are finite, that is, neither NaN nor infinite. Returns true for an empty span.
/// @cost O(n). Stops soon after the first value that is not finite.
[[nodiscard]] bool all_finite(std::span<const float> values) noexcept;
[[nodiscard]] bool all_finite(std::span<const double> values) noexcept;
/// Like `all_finite` of floats, for elements of any dtype with a fixed size. A complex number is finite if both of its parts are. Integers
/// are finite. @errors `invalid_argument_error` for any other dtype.
[[nodiscard]] bool all_finite(const elements_view& values);

/// Returns true if at least one value is NaN. Infinities are not NaN.
/// @cost O(n). Stops soon after the first NaN.
[[nodiscard]] bool any_nan(std::span<const float> values) noexcept;
[[nodiscard]] bool any_nan(std::span<const double> values) noexcept;
/// Like `any_nan` of floats, for elements of any dtype with a fixed size. A complex number is NaN if one of its parts is.
/// @errors `invalid_argument_error` for any other dtype.
[[nodiscard]] bool any_nan(const elements_view& values);

/// Returns element number `index` as a double. The result is exact, except for 64-bit integers above 2^53. Booleans are 0 or 1.
/// @pre `index` is below the number of elements.
/// @errors `invalid_argument_error` if the elements are complex or not numbers.
[[nodiscard]] double number_at(const elements_view& values, std::size_t index);

/// Statistics of the finite values. NaN and infinities are counted in `nonfinite` only. If there is no finite value, `min` is the greatest
/// double and `max` is the lowest double, as in the files of TensorFlow.
struct moments_of_values {
  double min = std::numeric_limits<double>::max();
  double max = std::numeric_limits<double>::lowest();
  double sum = 0;
  double sum_squares = 0;
  std::uint64_t count = 0;      ///< Number of finite values.
  std::uint64_t nonfinite = 0;  ///< Number of NaN and infinite values.
};

/// Returns the statistics of `values`. The sums are doubles and may overflow to infinity. The order of the additions depends only on the
/// number of values: 16 sums, each of every 16th value, are added at the end. The error of a sum is at most (n / 16 + 5) * 2^-53 times the
/// sum of the magnitudes. A minimum or maximum that is zero is +0.
/// @cost O(n), one pass.
[[nodiscard]] moments_of_values moments(std::span<const float> values) noexcept;
[[nodiscard]] moments_of_values moments(std::span<const double> values) noexcept;

/// Returns the 1551 limits of the histograms of TensorFlow 1.x (TF1), in ascending order: the lowest double, ..., -1e-12, 0, 1e-12, ...,
/// the greatest double.
[[nodiscard]] std::span<const double> histogram_limits();

/// A histogram of the finite values as TF1 writes it. The limits of its buckets are some of `histogram_limits()`. In that list, each limit
/// above 1e-12 is 1.1 times the limit before it, except the last one, which is the greatest double. The negative limits are the same
/// numbers with the other sign. Consecutive empty buckets are merged into one bucket, whose limit is the limit of the last merged bucket.
struct growing_histogram {
  moments_of_values stats;
  std::vector<double> limits;  ///< Right edge of each bucket, exclusive. The last edge is the greatest double.
  std::vector<double> counts;  ///< Number of values in each bucket. The sum is `stats.count`.
};

/// Returns the TF1 histogram of the finite values.
[[nodiscard]] growing_histogram make_growing_histogram(std::span<const float> values);
[[nodiscard]] growing_histogram make_growing_histogram(std::span<const double> values);
/// Like the overloads for spans, with elements of any real type. Reads each element once. The sums are those of blocks, added in their order.
/// @errors `invalid_argument_error` if the elements are complex or not numbers.
[[nodiscard]] growing_histogram make_growing_histogram(const lazy_view& values);

/// One bucket of a TF2 histogram: three doubles in the order of the file format.
struct equal_bucket {
  double left = 0;
  double right = 0;
  double count = 0;
};

/// A histogram of the finite values as TF2 writes it: `k` buckets of equal width, which cover the range from the least to the greatest
/// finite value. If no value is finite, all members of all buckets are zero. If all finite values are equal, both edges of each bucket are
/// this value, and the last bucket counts all finite values.
struct equal_histogram {
  moments_of_values stats;
  std::vector<equal_bucket> buckets;
};

/// Returns the TF2 histogram of the finite values, with `k` buckets. @pre `k` is at least 1.
[[nodiscard]] equal_histogram make_equal_histogram(std::span<const float> values, std::size_t k = 30);
[[nodiscard]] equal_histogram make_equal_histogram(std::span<const double> values, std::size_t k = 30);
/// Like the overloads for spans, with elements of any real type. Reads each element twice: for the range, and for the buckets. The sums are
/// those of blocks, added in their order.
/// @errors `invalid_argument_error` if the elements are complex or not numbers, or if the second reading gives values outside the range,
///         for example if the elements are random numbers.
[[nodiscard]] equal_histogram make_equal_histogram(const lazy_view& values, std::size_t k = 30);

/// Computes average += weight * (value - average) for each element. NaN and infinities follow floating-point arithmetic. Any alignment.
/// @pre  `averages` and `values` have the same size and do not overlap.
/// @cost O(n), one pass.
void move_towards(std::span<float> averages, std::span<const float> values, float weight) noexcept;
void move_towards(std::span<double> averages, std::span<const double> values, double weight) noexcept;

/// Writes all elements as doubles. Each one is that of `number_at`.
/// @pre    `numbers` has as many elements as `values`.
/// @errors `invalid_argument_error` if the elements are complex or not numbers.
void to_doubles(const elements_view& values, std::span<double> numbers);

}  // namespace stepwell::kernel
