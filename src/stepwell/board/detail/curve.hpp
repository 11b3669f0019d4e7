// SPDX-License-Identifier: Apache-2.0
//
// The points of one curve, and their reduction to buckets that keep every extreme.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace stepwell::board {

struct curve_point {
  std::int64_t step = 0;
  double time = 0;  ///< Seconds since 1970.
  double value = 0;
};

/// A summary of neighbouring points. `min`, `max` and `mean` are those of the finite values, and NaN if there are none.
struct curve_bucket {
  curve_point first;
  curve_point last;
  double min = std::numeric_limits<double>::quiet_NaN();
  double max = std::numeric_limits<double>::quiet_NaN();
  double mean = std::numeric_limits<double>::quiet_NaN();
  std::size_t finite = 0;
  std::size_t nan = 0;
  std::size_t pos_inf = 0;
  std::size_t neg_inf = 0;
};

/// Returns the bucket of the points. @pre There is a point.
[[nodiscard]] curve_bucket bucket_of(std::span<const curve_point> points);

/// Returns at most `most` buckets, which together have all points, in their order. Each has about the same number of points.
/// @pre `most` is above zero.
[[nodiscard]] std::vector<curve_bucket> reduce(std::span<const curve_point> points, std::size_t most);

/// The axis of a range.
enum class curve_axis { step, time };

/// A range of steps or times. A bound that is not set has no effect.
struct curve_range {
  curve_axis axis = curve_axis::step;
  std::optional<double> from = std::nullopt;
  std::optional<double> to = std::nullopt;
};

/// The points of one tag, in the order of their steps.
class curve {
public:
  /// Adds a point. Its place is after all points of its step and of smaller steps.
  void add(const curve_point& point);
  /// Removes the points of `step` and of later steps, which a resumed run makes again. Returns true if there were some.
  bool cut(std::int64_t step);

  /// Removes points if there are more than `most`: of each four neighbours, the lowest, the highest and one that is not finite stay.
  void thin_out(std::size_t most);

  [[nodiscard]] std::span<const curve_point> points() const noexcept { return points_; }
  /// Returns the points in the range, with one point before and one after it.
  [[nodiscard]] std::span<const curve_point> points_in(const curve_range& range) const;
  /// Returns the bucket of all points. @pre There is a point.
  [[nodiscard]] curve_bucket all() const { return bucket_of(points_); }
  /// Returns a number that changes when points are removed.
  [[nodiscard]] std::uint64_t revision() const noexcept { return revision_; }

private:
  std::vector<curve_point> points_;
  std::uint64_t revision_ = 0;
};

/// Returns buckets in the binary form of the interface. `total` is the number of points before the reduction.
/// @see openapi.yaml, /api/curve
[[nodiscard]] std::string encode_buckets(std::span<const curve_bucket> buckets, std::size_t total, std::uint64_t revision);

}  // namespace stepwell::board
