// SPDX-License-Identifier: Apache-2.0
//
// One axis of a chart: where values lie, and which numbers stand at it.
#pragma once

#include "tool/series.hpp"

#include <string>
#include <vector>

namespace stepwell::tool {

struct tick {
  double value = 0;
  double place = 0;  ///< 0 at the low end, 1 at the high one.
  std::string text;
};

/// Linear, or logarithmic for positive values. The ends are round numbers where `is_round`, else those of the data.
class axis {
public:
  /// About `wanted` ticks. @pre `values` is not empty; positive if `is_logarithmic`.
  axis(range values, std::size_t wanted, bool is_round, bool is_logarithmic = false);

  /// Where a value lies: 0 to 1 inside.
  [[nodiscard]] double place_of(double value) const noexcept;
  [[nodiscard]] const std::vector<tick>& ticks() const noexcept { return ticks_; }

private:
  void make_linear(range values, std::size_t wanted, bool is_round);
  void make_logarithmic(range values, std::size_t wanted);
  void add_tick(double value, std::string text);

  bool is_logarithmic_;
  double low_ = 0;  // of the logarithm, if that is what counts
  double high_ = 1;
  std::vector<tick> ticks_;
};

}  // namespace stepwell::tool
