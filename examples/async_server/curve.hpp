// SPDX-License-Identifier: Apache-2.0
//
// The model: a sum of bumps, whose heights are trained until the curve fits noisy points.
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

  /// Returns the curve's value at `x`.
  [[nodiscard]] float at(float x) const;
  /// Returns the mean squared error on `points`. @pre `points` is not empty.
  [[nodiscard]] float error(std::span<const point> points) const;

  /// Performs one step of gradient descent on the mean squared error of `batch`.
  result step(const std::vector<point>& batch);
  [[nodiscard]] auto variables() { return stepwell::variables({{"heights", heights_}}); }

private:
  std::vector<float> heights_ = std::vector<float>(16);
};

/// Returns noisy points of a sine with x from -3 to 3. `seed` selects the points and the noise.
[[nodiscard]] std::vector<point> noisy_points(std::uint64_t seed, int count);

}  // namespace async_server
