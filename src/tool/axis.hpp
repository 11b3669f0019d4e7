// SPDX-License-Identifier: Apache-2.0
//
// One axis of a chart: maps values to positions, and selects ticks.
#pragma once

#include "tool/series.hpp"

#include <string>
#include <vector>

namespace stepwell::tool {

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

private:
  void make_linear(range values, std::size_t wanted, bool is_round);
  void make_logarithmic(range values, std::size_t wanted);
  void add_tick(double value, std::string text);

  bool is_logarithmic_;
  double low_ = 0;  // its logarithm if the axis is logarithmic
  double high_ = 1;
  std::vector<tick> ticks_;
};

}  // namespace stepwell::tool
