// SPDX-License-Identifier: Apache-2.0
//
// Handwritten shapes of the ten digits, as the points a pen passes through.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace digits {

/// A point in the unit square: x to the right, y down.
struct point {
  double x = 0;
  double y = 0;
};

/// The points of one stroke, drawn without lifting the pen. A repeated point is a corner; the line is smooth elsewhere.
using stroke = std::vector<point>;

/// One shape of one digit.
using glyph = std::vector<stroke>;

/// Returns the shapes of `digit`, at least one. @pre `digit < 10`.
[[nodiscard]] std::span<const glyph> glyphs_of(std::size_t digit);

}  // namespace digits
