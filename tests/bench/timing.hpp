// SPDX-License-Identifier: Apache-2.0
//
// The time of an action in real time, and the median of several times.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <vector>

namespace stepwell::bench {

[[nodiscard]] inline double seconds_of(const std::function<void()>& action) {
  const auto start = std::chrono::steady_clock::now();
  action();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Returns the median. @pre `values` is not empty.
[[nodiscard]] inline double median(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2));
  return values[values.size() / 2];
}

}  // namespace stepwell::bench
