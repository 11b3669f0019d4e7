// SPDX-License-Identifier: Apache-2.0
//
// The points of one curve, and their reduction to buckets that keep every extreme and the mean.
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

/// The values that a point represents after `curve::thin_out` has removed its neighbours.
struct curve_share {
  double mean = 0;  ///< Of the finite values.
  std::uint32_t finite = 0;
  std::uint32_t nan = 0;
  std::uint32_t pos_inf = 0;
  std::uint32_t neg_inf = 0;
};

/// Neighbouring points of a curve.
struct curve_part {
  curve_part(std::span<const curve_point> neighbours, std::span<const curve_share> represented = {})  // NOLINT(google-explicit-constructor)
      : points(neighbours), shares(represented) {}

  /// Returns `count` points from the point `begin` on.
  [[nodiscard]] curve_part part(std::size_t begin, std::size_t count = std::dynamic_extent) const {
    return {points.subspan(begin, count), shares.empty() ? shares : shares.subspan(begin, count)};
  }

  std::span<const curve_point> points;
  std::span<const curve_share> shares;  ///< One for each point. Empty: each point represents its own value.
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
[[nodiscard]] curve_bucket bucket_of(const curve_part& part);

/// Returns at most `most` buckets, which together have all points, in their order. Each has about the same number of points.
/// @pre `most` is above zero.
[[nodiscard]] std::vector<curve_bucket> reduce(const curve_part& part, std::size_t most);

/// The extremes of a curve, and the steps at which it had them first. NaN if it has no finite value.
struct curve_extremes {
  double min = std::numeric_limits<double>::quiet_NaN();
  double max = std::numeric_limits<double>::quiet_NaN();
  std::int64_t min_step = 0;
  std::int64_t max_step = 0;
  std::size_t non_finite = 0;

  /// Adds the extremes of later points.
  void add(const curve_extremes& later);
};

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
  /// Adds the points of `other` after the step `after`, or all of them.
  void add_points_of(const curve& other, std::optional<std::int64_t> after = std::nullopt);
  /// Removes the points of `step` and of later steps, which a resumed run makes again. Returns true if there were some.
  bool cut(std::int64_t step);

  /// Removes points if there are more than `most`: of each four neighbours, the lowest, the highest and one that is not finite stay. They
  /// represent the values of the others, so mean and counts do not change. The first and the last point stay.
  void thin_out(std::size_t most);

  [[nodiscard]] std::span<const curve_point> points() const noexcept { return points_; }
  /// Returns the points with the values that they represent.
  [[nodiscard]] curve_part part() const noexcept { return {points_, shares_}; }
  /// Returns the points in the range, with one point before and one after it.
  [[nodiscard]] curve_part points_in(const curve_range& range) const;
  /// Returns the bucket of all points. @pre There is a point.
  [[nodiscard]] curve_bucket all() const { return bucket_of(part()); }
  [[nodiscard]] const curve_extremes& extremes() const noexcept { return extremes_; }
  /// Returns the step of the last point. Empty if there is no point.
  [[nodiscard]] std::optional<std::int64_t> last_step() const;
  /// Returns a number that no other curve of this process has. It changes when points are removed, or added before the last one.
  [[nodiscard]] std::uint64_t revision() const noexcept { return revision_; }

private:
  void insert(const curve_point& point, const curve_share& share);
  [[nodiscard]] curve_share share_of(std::size_t index) const;

  std::vector<curve_point> points_;
  std::vector<curve_share> shares_;  // empty until points are removed
  curve_extremes extremes_;
  std::uint64_t revision_ = new_revision();

  static std::uint64_t new_revision() noexcept;
};

/// The header of a curve in the binary form of the interface.
struct curve_header {
  std::size_t total = 0;  ///< Number of points before the reduction.
  std::uint64_t revision = 0;
  std::size_t fixed_points = 0;   ///< Number of points that do not change as long as the revision does not change.
  std::size_t fixed_buckets = 0;  ///< Number of buckets of these points. They are the first ones.
};

/// Returns buckets in the binary form of the interface.
/// @see openapi.yaml, /api/curve
[[nodiscard]] std::string encode_buckets(std::span<const curve_bucket> buckets, const curve_header& header);

}  // namespace stepwell::board
