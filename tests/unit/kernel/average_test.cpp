// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"

#include <stepwell/kernel/detail/statistics.hpp>

#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

namespace kernel = stepwell::kernel;

namespace {

template<class T>
std::vector<T> wave(std::size_t size, double start) {
  std::vector<T> values(size);
  for (std::size_t i = 0; i < size; ++i) { values[i] = static_cast<T>(std::sin(start + static_cast<double>(i) * 0.7) * 3); }
  return values;
}

}  // namespace

TEMPLATE_TEST_CASE("averages move as in a plain loop of doubles, at every length and alignment", "[kernel][average]", float, double) {
  const double margin = 8 * static_cast<double>(std::numeric_limits<TestType>::epsilon());
  for (std::size_t size = 0; size <= 67; ++size) {
    const auto start = wave<TestType>(size + 3, 1);
    const auto values = wave<TestType>(size + 3, 2);
    auto averages = start;
    const auto from = size % 3;
    kernel::move_towards(std::span(averages).subspan(from, size), std::span<const TestType>(values).subspan(from, size), TestType(0.25));
    for (std::size_t i = 0; i < averages.size(); ++i) {
      const auto before = static_cast<double>(start[i]);
      const bool is_inside = i >= from && i < from + size;
      CHECK(static_cast<double>(averages[i]) ==
            Approx(is_inside ? before + 0.25 * (static_cast<double>(values[i]) - before) : before).margin(margin));
    }
  }
}

TEMPLATE_TEST_CASE("a weight of zero changes nothing, and one of one nearly takes the value", "[kernel][average]", float, double) {
  const auto values = wave<TestType>(19, 2);
  auto averages = std::vector<TestType>(19, TestType(0));
  kernel::move_towards(averages, values, TestType(0));
  CHECK(averages == std::vector<TestType>(19, TestType(0)));
  kernel::move_towards(averages, values, TestType(1));
  CHECK(averages == values);  // exactly equal, starting from zero
}
