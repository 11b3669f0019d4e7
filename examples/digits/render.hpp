// SPDX-License-Identifier: Apache-2.0
//
// A writer who never tires: images of handwritten-looking digits, each a pure function of a seed and its number.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace digits {

inline constexpr std::size_t image_side = 28;
inline constexpr std::size_t image_pixels = image_side * image_side;

/// What one hand does to a glyph. Lengths are in pixels.
struct handwriting {
  double height = 20;  // of the upright digit
  double width = 16;
  double slant = 0.1;  // how far the top leans to the right, of the height
  double turn = 0;     // tangent of half the rotation
  double shift_x = 0;
  double shift_y = 0;
  double pen = 1.1;      // half the thickness of the line
  double pressure = 0;   // how much thicker the line ends than it begins
  double wobble = 0.02;  // of the control points, in the unit square
  double ink = 1;        // how black the line is
  double grain = 0.05;   // how unevenly the paper takes it
};

/// An image and what it shows. 0 is paper, 255 is ink.
struct drawing {
  std::uint8_t digit = 0;
  std::array<std::uint8_t, image_pixels> pixels{};
};

/// Image number `index` under `seed`.
/// @cost About 20 microseconds. Only +, -, *, / and square roots are used: the bytes are the same on every machine.
[[nodiscard]] drawing render(std::uint64_t seed, std::uint64_t index);

}  // namespace digits
