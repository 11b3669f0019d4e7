// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"

#include <stepwell/kernel/statistics.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace kernel = stepwell::kernel;

namespace {

template<class T>
std::vector<T> bad_values() {
  using limits = std::numeric_limits<T>;
  return {limits::quiet_NaN(), -limits::quiet_NaN(), limits::infinity(), -limits::infinity()};
}

template<class T>
std::vector<T> odd_but_good_values() {
  using limits = std::numeric_limits<T>;
  return {T{0}, -T{0}, limits::max(), limits::lowest(), limits::min(), limits::denorm_min(), T{1}};
}

}  // namespace

TEMPLATE_TEST_CASE("one bad value is found at every place, length and alignment", "[kernel][finite]", float, double) {
  for (std::size_t size = 1; size <= 70; ++size) {
    for (std::size_t at = 0; at < size; ++at) {
      for (const TestType bad : bad_values<TestType>()) {
        std::vector<TestType> values(size + 3, TestType{1});
        values[at + at % 3] = bad;
        const std::span<const TestType> piece(values.data() + at % 3, size);
        const bool found = !kernel::all_finite(piece);
        if (!found || kernel::any_nan(piece) != std::isnan(bad)) { FAIL("size " << size << ", place " << at); }
      }
    }
  }
  SUCCEED();
}

TEMPLATE_TEST_CASE("zeros, denormals and the greatest values are finite", "[kernel][finite]", float, double) {
  for (std::size_t size = 0; size <= 70; ++size) {
    std::vector<TestType> values(size);
    const auto good = odd_but_good_values<TestType>();
    for (std::size_t i = 0; i < size; ++i) { values[i] = good[i % good.size()]; }
    if (!kernel::all_finite(std::span<const TestType>(values)) || kernel::any_nan(std::span<const TestType>(values))) {
      FAIL("size " << size);
    }
  }
  SUCCEED();
}

TEST_CASE("values just outside the span are not looked at", "[kernel][finite]") {
  std::vector<float> values(66, std::numeric_limits<float>::quiet_NaN());
  std::fill(values.begin() + 1, values.end() - 1, 1.0F);
  CHECK(kernel::all_finite(std::span<const float>(values).subspan(1, 64)));
  CHECK_FALSE(kernel::any_nan(std::span<const float>(values).subspan(1, 64)));
}
