// SPDX-License-Identifier: Apache-2.0
//
// The model: a curve made of bumps, whose heights are trained until it goes through the middle of noisy points.
#pragma once

#include <stepwell/base/variable.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace async_server {

struct point {
  float x, y;
};

class curve {
public:
  struct result {
    float loss;
  };

  /// The curve at `x`.
  [[nodiscard]] float at(float x) const;
  /// The mean square of how far it is from `points`. @pre There is one.
  [[nodiscard]] float error(std::span<const point> points) const;

  /// One step down the slope of the mean square error of `batch`.
  result step(const std::vector<point>& batch);
  [[nodiscard]] auto variables() { return stepwell::variables({{"heights", heights_}}); }

private:
  std::vector<float> heights_ = std::vector<float>(16);
};

/// Points from -3 to 3 around a sine, noise and all: which ones is a matter of `seed`.
[[nodiscard]] std::vector<point> noisy_points(std::uint64_t seed, int count);

}  // namespace async_server
