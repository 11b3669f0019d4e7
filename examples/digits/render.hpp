// SPDX-License-Identifier: Apache-2.0
//
// Renders images that look like handwritten digits. Each image is a pure function of a seed and its number.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace digits {

inline constexpr std::size_t image_side = 28;
inline constexpr std::size_t image_pixels = image_side * image_side;

/// The parameters of a handwriting. Lengths are in pixels.
struct handwriting {
  double height = 20;  // of the upright digit
  double width = 16;
  double slant = 0.1;  // distance that the top leans to the right, relative to the height
  double turn = 0;     // tangent of half the rotation
  double shift_x = 0;
  double shift_y = 0;
  double pen = 1.1;      // half the thickness of the line
  double pressure = 0;   // relative increase in thickness from the beginning of the line to its end
  double wobble = 0.02;  // displacement of the control points, in the unit square
  double ink = 1;        // blackness of the line
  double grain = 0.05;   // unevenness of the ink on the paper
};

/// An image and its digit. 0 is paper, 255 is ink.
struct drawing {
  std::uint8_t digit = 0;
  std::array<std::uint8_t, image_pixels> pixels{};
};

/// Returns image number `index` for `seed`.
/// @cost About 20 microseconds. It uses only +, -, *, / and square roots, so the bytes are the same on every machine.
[[nodiscard]] drawing render(std::uint64_t seed, std::uint64_t index);

}  // namespace digits
