// SPDX-License-Identifier: Apache-2.0
//
// Charts: lines of any number of points in bounded memory, axes with ticks, and drawings in the terminal.
#pragma once

#include "tool/output.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace stepwell::tool {

/// Adjacent points that are drawn together. A line through all of the points passes through these values.
struct point_group {
  double first_x = 0;
  double last_x = 0;
  double first = 0;
  double last = 0;
  double min = 0;
  double max = 0;
  std::uint64_t count = 0;
};

/// Points in the order in which they were written. Values that cannot be drawn are counted and skipped: values that are not finite, and, in
/// a series for a logarithmic axis, values of 0 and below. If there are too many groups, each pair of adjacent groups is merged into one,
/// which keeps the least and the greatest value, so that peaks remain visible.
class series {
public:
  explicit series(std::string name = {}, std::size_t most_groups = std::size_t{1} << 16) : name_(std::move(name)), most_(most_groups) {}

  /// Skips values of 0 and below from now on.
  void take_positive_only() noexcept { is_positive_only_ = true; }
  void add(double x, double y);
  /// Removes the points at `x` and beyond, because a run was rolled back and writes them again. A group that contains `x` is reduced to its
  /// first point.
  void cut_from(double x);

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  void rename(std::string name) { name_ = std::move(name); }
  [[nodiscard]] const std::vector<point_group>& groups() const noexcept { return groups_; }
  [[nodiscard]] std::uint64_t points() const noexcept;
  [[nodiscard]] std::uint64_t not_finite() const noexcept { return not_finite_; }
  /// Returns the number of values skipped because they are 0 or below.
  [[nodiscard]] std::uint64_t not_positive() const noexcept { return not_positive_; }

private:
  void halve();

  std::string name_;
  std::size_t most_;
  std::uint64_t per_group_ = 1;
  std::vector<point_group> groups_;
  std::uint64_t not_finite_ = 0;
  std::uint64_t not_positive_ = 0;
  bool is_positive_only_ = false;
};

/// The least and the greatest of several values.
struct range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  [[nodiscard]] bool empty() const noexcept { return !(low <= high); }
  void add(double value) noexcept;
};
[[nodiscard]] range x_range(const std::vector<series>& lines) noexcept;
[[nodiscard]] range y_range(const std::vector<series>& lines) noexcept;

/// A mark on an axis.
struct tick {
  double value = 0;
  double place = 0;  ///< Position: 0 at the low end, 1 at the high end.
  std::string text;
};

/// A linear axis, or a logarithmic one for positive values. The ends of a linear axis are round numbers if `is_round`. Otherwise the ends
/// are those of the data.
class axis {
public:
  /// Creates an axis with about `wanted` ticks.
  /// @pre `values` is not empty, and positive if `is_logarithmic`.
  axis(range values, std::size_t wanted, bool is_round, bool is_logarithmic = false);

  /// Returns the position of a value, from 0 to 1 if the value is between the ends.
  [[nodiscard]] double place_of(double value) const noexcept;
  [[nodiscard]] const std::vector<tick>& ticks() const noexcept { return ticks_; }
  /// Labels an axis of steps that are counted from `origin`. Ticks between steps are removed.
  void count_from(std::int64_t origin);

private:
  void make_linear(range values, std::size_t wanted, bool is_round);
  void make_logarithmic(range values, std::size_t wanted);
  void add_tick(double value, std::string text);

  bool is_logarithmic_;
  double low_ = 0;  // its logarithm if the axis is logarithmic
  double high_ = 1;
  std::vector<tick> ticks_;
};

/// The lines and settings of a chart.
struct chart {
  std::vector<series> lines;
  std::string title;
  int width = 80;
  int height = 20;
  bool log_scale = false;
  std::int64_t origin = 0;  ///< Added to each x: a double is not exact for steps above 2^53.
};

/// Returns the step at an x of a chart.
[[nodiscard]] std::int64_t step_of(double x, std::int64_t origin) noexcept;

/// Returns ", and 3 not finite", ", and 2 of 0 or below left out (...)", or both. Empty if no value of the line was skipped.
[[nodiscard]] std::string left_out_text(const series& line);

/// Draws with braille dots (in ASCII: stars), and numbers at the axes. Several lines in one chart have different colours. Without colours, or
/// in ASCII, they have different characters.
void draw_in_terminal(const chart& drawn, console& to);

}  // namespace stepwell::tool
