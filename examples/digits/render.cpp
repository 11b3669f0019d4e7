// SPDX-License-Identifier: Apache-2.0
#include "render.hpp"

#include "glyphs.hpp"

#include <stepwell/base/random.hpp>

#include <algorithm>
#include <cmath>
#include <vector>

namespace digits {
namespace {

using stepwell::random_stream;

/// Returns the sum of three uniform numbers, scaled to -1 to 1. Values near 0 are the most likely.
double async_event(random_stream& random) { return (random.uniform() + random.uniform() + random.uniform()) * (2.0 / 3.0) - 1.0; }

double between(random_stream& random, double low, double high) { return low + (high - low) * random.uniform(); }

handwriting some_hand(random_stream& random) {
  handwriting hand;
  hand.height = 19.0 + 4.0 * async_event(random);
  hand.width = 15.5 + 5.5 * async_event(random);
  hand.slant = 0.12 + 0.55 * async_event(random);
  hand.turn = 0.22 * async_event(random);
  hand.shift_x = 2.8 * async_event(random);
  hand.shift_y = 2.8 * async_event(random);
  hand.pen = between(random, 0.6, 1.8);
  hand.pressure = 0.5 * async_event(random);
  hand.wobble = between(random, 0.03, 0.15);
  hand.ink = between(random, 0.7, 1.0);
  hand.grain = between(random, 0.0, 0.3);
  return hand;
}

stroke wobbled(const stroke& original, double wobble, random_stream& random) {
  stroke moved;
  for (std::size_t i = 0; i < original.size(); ++i) {
    const bool corner = i > 0 && original[i].x == original[i - 1].x && original[i].y == original[i - 1].y;
    if (corner) {
      moved.push_back(moved.back());  // keeps the corner
    } else {
      moved.push_back({original[i].x + wobble * async_event(random), original[i].y + wobble * async_event(random)});
    }
  }
  return moved;
}

/// Maps a point from the unit square to pixels: scaled, slanted, turned and shifted about the centre.
point placed(point at, const handwriting& hand) {
  const double y = (at.y - 0.5) * hand.height;
  const double x = (at.x - 0.5) * hand.width - hand.slant * y;
  const double scale = 1.0 / (1.0 + hand.turn * hand.turn);
  const double cosine = (1.0 - hand.turn * hand.turn) * scale;
  const double sine = 2.0 * hand.turn * scale;
  const double middle = image_side / 2.0;
  return {middle + hand.shift_x + cosine * x - sine * y, middle + hand.shift_y + sine * x + cosine * y};
}

/// Returns the point at `t` in [0, 1] of the Catmull-Rom curve from `b` to `c`, with the neighbours `a` and `d`.
point curve(point a, point b, point c, point d, double t) {
  const auto one = [t](double p, double q, double r, double s) {
    return q + 0.5 * t * (r - p + t * (2.0 * p - 5.0 * q + 4.0 * r - s + t * (3.0 * (q - r) + s - p)));
  };
  return {one(a.x, b.x, c.x, d.x), one(a.y, b.y, c.y, d.y)};
}

/// Returns a polyline through the points that is fine enough to look smooth.
stroke flattened(const stroke& through) {
  constexpr int pieces = 6;
  stroke line{through.front()};
  for (std::size_t i = 0; i + 1 < through.size(); ++i) {
    const auto& before = through[i > 0 ? i - 1 : 0];
    const auto& after = through[std::min(i + 2, through.size() - 1)];
    for (int piece = 1; piece <= pieces; ++piece) {
      line.push_back(curve(before, through[i], through[i + 1], after, static_cast<double>(piece) / pieces));
    }
  }
  return line;
}

/// The amount of ink on each pixel, from 0 to 1.
class paper {
public:
  /// Draws a straight piece of a line that reaches `pen` pixels to both sides of its centre. The edges are smoothed
  /// over one pixel.
  void draw(point from, point to, double pen) {
    const double reach = pen + 1.0;
    for (int row = first(std::min(from.y, to.y) - reach); row < last(std::max(from.y, to.y) + reach); ++row) {
      for (int column = first(std::min(from.x, to.x) - reach); column < last(std::max(from.x, to.x) + reach); ++column) {
        const double distance = distance_to({column + 0.5, row + 0.5}, from, to);
        auto& ink = ink_[static_cast<std::size_t>(row) * image_side + static_cast<std::size_t>(column)];
        ink = std::max(ink, std::clamp((pen + 0.6 - distance) / 1.2, 0.0, 1.0));
      }
    }
  }

  [[nodiscard]] double operator[](std::size_t pixel) const { return ink_[pixel]; }

private:
  static int first(double edge) { return std::max(0, static_cast<int>(edge)); }
  static int last(double edge) { return std::min(static_cast<int>(image_side), static_cast<int>(edge + 1.0)); }

  static double distance_to(point pixel, point from, point to) {
    const point along{to.x - from.x, to.y - from.y};
    const point off{pixel.x - from.x, pixel.y - from.y};
    const double length_squared = along.x * along.x + along.y * along.y;
    const double nearest = length_squared > 0 ? std::clamp((off.x * along.x + off.y * along.y) / length_squared, 0.0, 1.0) : 0.0;
    const point left{off.x - nearest * along.x, off.y - nearest * along.y};
    return std::sqrt(left.x * left.x + left.y * left.y);
  }

  std::array<double, image_pixels> ink_{};
};

void write(paper& sheet, const stroke& line, const handwriting& hand) {
  const auto last = static_cast<double>(line.size() - 1);
  for (std::size_t i = 0; i + 1 < line.size(); ++i) {
    const double pen = hand.pen * (1.0 + hand.pressure * (static_cast<double>(i) / last - 0.5));
    sheet.draw(placed(line[i], hand), placed(line[i + 1], hand), pen);
  }
}

std::uint8_t developed(double ink, const handwriting& hand, random_stream& random) {
  const double uneven = ink * hand.ink * (1.0 - hand.grain * random.uniform());
  const double speck = random.uniform() < 0.004 ? 0.5 * random.uniform() : 0.0;
  // NOLINTNEXTLINE(bugprone-incorrect-roundings): it is not below zero
  return static_cast<std::uint8_t>(255.0 * std::clamp(std::max(uneven, speck), 0.0, 1.0) + 0.5);
}

}  // namespace

drawing render(std::uint64_t seed, std::uint64_t index) {
  random_stream random(seed, index);
  drawing made;
  made.digit = static_cast<std::uint8_t>(random() % 10);
  const auto ways = glyphs_of(made.digit);
  const auto& way = ways[random() % ways.size()];
  const auto hand = some_hand(random);

  paper sheet;
  for (const auto& original : way) { write(sheet, flattened(wobbled(original, hand.wobble, random)), hand); }
  for (std::size_t pixel = 0; pixel < image_pixels; ++pixel) { made.pixels[pixel] = developed(sheet[pixel], hand, random); }
  return made;
}

}  // namespace digits
