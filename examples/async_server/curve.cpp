// SPDX-License-Identifier: Apache-2.0
#include "curve.hpp"

#include <stepwell/base/random.hpp>

#include <cmath>
#include <cstddef>

namespace async_server {
namespace {

constexpr float learning_rate = 0.2F;

/// Returns the value of bump `index` at `x`. It is between 0 and 1; the centres are between -3.75 and 3.75.
float bump(std::size_t index, float x) {
  const float distance = x - (static_cast<float>(index) * 0.5F - 3.75F);
  return std::exp(-2 * distance * distance);
}

}  // namespace

float curve::at(float x) const {
  float y = 0;
  for (std::size_t i = 0; i < heights_.size(); ++i) { y += heights_[i] * bump(i, x); }
  return y;
}

float curve::error(std::span<const point> points) const {
  double squares = 0;
  for (const auto& each : points) { squares += std::pow(static_cast<double>(at(each.x) - each.y), 2); }
  return static_cast<float>(squares / static_cast<double>(points.size()));
}

curve::result curve::step(const std::vector<point>& batch) {
  const float loss = error(batch);
  std::vector<float> slope(heights_.size());
  for (const auto& each : batch) {
    const float off = at(each.x) - each.y;
    for (std::size_t i = 0; i < slope.size(); ++i) { slope[i] += off * bump(i, each.x); }
  }
  for (std::size_t i = 0; i < slope.size(); ++i) { heights_[i] -= learning_rate * slope[i] / static_cast<float>(batch.size()); }
  return {loss};
}

std::vector<point> noisy_points(std::uint64_t seed, int count) {
  stepwell::random_stream random(seed);
  std::vector<point> points;
  for (int i = 0; i < count; ++i) {
    const auto x = static_cast<float>(6 * random.uniform() - 3);
    const auto noise = static_cast<float>(0.2 * (random.uniform() - 0.5));
    points.push_back({x, std::sin(x) + noise});
  }
  return points;
}

}  // namespace async_server
