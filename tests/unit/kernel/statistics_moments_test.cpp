// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"

#include <stepwell/kernel/detail/statistics.hpp>

#include <cmath>
#include <limits>
#include <vector>

namespace kernel = stepwell::kernel;

namespace {

// Computes the moments with a scalar loop, as a reference.
template<class T>
kernel::moments_of_values one_by_one(std::span<const T> values) {
  kernel::moments_of_values all;
  for (const T value : values) {
    if (!std::isfinite(value)) {
      ++all.nonfinite;
      continue;
    }
    const auto wide = static_cast<double>(value);
    all.min = std::min(all.min, wide);
    all.max = std::max(all.max, wide);
    all.sum += wide;
    all.sum_squares += wide * wide;
    ++all.count;
  }
  return all;
}

void check_same(const kernel::moments_of_values& seen, const kernel::moments_of_values& expected) {
  CHECK(seen.min == expected.min);
  CHECK(seen.max == expected.max);
  CHECK(seen.count == expected.count);
  CHECK(seen.nonfinite == expected.nonfinite);
  CHECK(seen.sum == Approx(expected.sum).epsilon(1e-12).margin(1e-12));
  CHECK(seen.sum_squares == Approx(expected.sum_squares).epsilon(1e-12));
}

template<class T>
std::vector<T> wave(std::size_t size) {
  std::vector<T> values(size);
  for (std::size_t i = 0; i < size; ++i) { values[i] = static_cast<T>(std::sin(static_cast<double>(i) * 0.7) * 3); }
  return values;
}

}  // namespace

TEMPLATE_TEST_CASE("one pass finds what a plain loop finds, at every length", "[kernel][moments]", float, double) {
  const auto values = wave<TestType>(140);
  for (std::size_t size = 0; size <= 137; ++size) {
    const std::span<const TestType> piece(values.data() + size % 3, size);
    check_same(kernel::moments(piece), one_by_one(piece));
  }
}

TEMPLATE_TEST_CASE("NaN and infinities are counted apart, wherever they stand", "[kernel][moments]", float, double) {
  using limits = std::numeric_limits<TestType>;
  for (const TestType bad : {limits::quiet_NaN(), limits::infinity(), -limits::infinity()}) {
    for (std::size_t at = 0; at < 21; ++at) {
      auto values = wave<TestType>(21);
      values[at] = bad;
      check_same(kernel::moments(std::span<const TestType>(values)), one_by_one(std::span<const TestType>(values)));
    }
  }
  const std::vector<TestType> none_good(9, limits::quiet_NaN());
  const auto seen = kernel::moments(std::span<const TestType>(none_good));
  CHECK(seen.count == 0);
  CHECK(seen.nonfinite == 9);
  CHECK(seen.sum == 0);
}

TEST_CASE("without values, the least is the greatest double and the greatest is the lowest", "[kernel][moments]") {
  const auto seen = kernel::moments(std::span<const float>());
  CHECK(seen.min == std::numeric_limits<double>::max());
  CHECK(seen.max == std::numeric_limits<double>::lowest());
  CHECK(seen.count == 0);
}

TEST_CASE("sums of floats are taken in double", "[kernel][moments]") {
  const std::vector<float> values(100'000, 1e8F);
  const auto seen = kernel::moments(std::span<const float>(values));
  CHECK(seen.sum == 1e13);
  CHECK(seen.sum_squares == 1e21);
}

TEST_CASE("all negative values have a negative greatest one", "[kernel][moments]") {
  const std::vector<double> values{-3, -1, -2, -5, -4};
  const auto seen = kernel::moments(std::span<const double>(values));
  CHECK(seen.max == -1);
  CHECK(seen.min == -5);
}
