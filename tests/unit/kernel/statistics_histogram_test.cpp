// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"

#include <stepwell/kernel/detail/statistics.hpp>

#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

namespace kernel = stepwell::kernel;

namespace {

constexpr double greatest = std::numeric_limits<double>::max();

std::span<const double> of(const std::vector<double>& values) { return values; }

double total(const kernel::growing_histogram& made) { return std::accumulate(made.counts.begin(), made.counts.end(), 0.0); }

}  // namespace

TEST_CASE("TF1's limits are 1551, symmetric, and grow by a tenth", "[kernel][histogram]") {
  const auto limits = kernel::histogram_limits();
  REQUIRE(limits.size() == 1551);
  CHECK(limits.front() == -greatest);
  CHECK(limits.back() == greatest);
  CHECK(limits[775] == 0);
  CHECK(limits[776] == 1e-12);
  CHECK(limits[777] == 1e-12 * 1.1);
  CHECK(limits[778] == 1e-12 * 1.1 * 1.1);
  CHECK(limits[1549] < 1e20);
  CHECK(limits[1549] * 1.1 >= 1e20);
  for (std::size_t i = 0; i < limits.size(); ++i) {
    if (limits[i] != -limits[1550 - i] || (i > 0 && limits[i] <= limits[i - 1])) { FAIL("limit " << i); }
  }
}

TEST_CASE("a value goes to the first limit greater than it", "[kernel][histogram]") {
  for (const double value : {0.0, 1e-12, -1e-12, 1.0, -1.0, 5e19, 1e300, -1e300, greatest / 2, -greatest}) {
    const auto made = kernel::make_growing_histogram(of({value}));
    std::size_t at = 0;
    while (made.counts[at] == 0) { ++at; }
    INFO(value);
    CHECK(made.limits[at] > value);
    CHECK((at == 0 || made.limits[at - 1] <= value));
    CHECK(total(made) == 1);
  }
  CHECK(total(kernel::make_growing_histogram(of({greatest}))) == 1);
}

TEST_CASE("runs of empty buckets are folded into one at the last limit of the run", "[kernel][histogram]") {
  const auto limits = kernel::histogram_limits();
  const auto made = kernel::make_growing_histogram(of({0.0, 0.0, 1.05e-12}));
  CHECK(made.limits == std::vector<double>{0.0, limits[776], limits[777], greatest});
  CHECK(made.counts == std::vector<double>{0, 2, 1, 0});
  CHECK(made.stats.count == 3);
}

TEST_CASE("a histogram of nothing is one empty bucket up to the greatest double", "[kernel][histogram]") {
  const auto made = kernel::make_growing_histogram(std::span<const float>());
  CHECK(made.limits == std::vector<double>{greatest});
  CHECK(made.counts == std::vector<double>{0});
  CHECK(made.stats.min == greatest);
  CHECK(made.stats.max == -greatest);
}

TEST_CASE("values that are not finite are counted, and in no bucket", "[kernel][histogram]") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double inf = std::numeric_limits<double>::infinity();
  const auto growing = kernel::make_growing_histogram(of({1, nan, inf, -inf, 2}));
  CHECK(total(growing) == 2);
  CHECK(growing.stats.nonfinite == 3);
  const auto equal = kernel::make_equal_histogram(of({1, nan, inf, -inf, 2}), 2);
  CHECK(equal.stats.nonfinite == 3);
  CHECK(equal.buckets[0].left == 1);
  CHECK(equal.buckets[1].right == 2);
  CHECK(equal.buckets[0].count + equal.buckets[1].count == 2);
}

TEST_CASE("equal buckets reach from the least value to exactly the greatest", "[kernel][histogram]") {
  const auto made = kernel::make_equal_histogram(of({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}), 5);
  REQUIRE(made.buckets.size() == 5);
  for (std::size_t i = 0; i < 5; ++i) {
    CHECK(made.buckets[i].left == 2.0 * static_cast<double>(i));
    CHECK(made.buckets[i].right == 2.0 * static_cast<double>(i + 1));
    CHECK(made.buckets[i].count == (i == 4 ? 3 : 2));
  }
  const auto thirds = kernel::make_equal_histogram(of({0.1, 0.7}), 3);
  CHECK(thirds.buckets.back().right == 0.7);
}

TEST_CASE("a histogram without values has k rows of zeros", "[kernel][histogram]") {
  const auto made = kernel::make_equal_histogram(std::span<const float>(), 30);
  REQUIRE(made.buckets.size() == 30);
  for (const auto& row : made.buckets) { CHECK((row.left == 0 && row.right == 0 && row.count == 0)); }
}

TEST_CASE("a histogram of equal values has every row, and the last one holds all values", "[kernel][histogram]") {
  const std::vector<float> values(7, 2.5F);
  const auto made = kernel::make_equal_histogram(std::span<const float>(values), 4);
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(made.buckets[i].left == 2.5);
    CHECK(made.buckets[i].right == 2.5);
    CHECK(made.buckets[i].count == (i == 3 ? 7 : 0));
  }
}

TEST_CASE("a range wider than the greatest double, or narrower than the least, is still cut", "[kernel][histogram]") {
  const auto wide = kernel::make_equal_histogram(of({-greatest, 0.5, greatest}), 4);
  CHECK(wide.buckets.front().left == -greatest);
  CHECK(wide.buckets.back().right == greatest);
  CHECK(wide.buckets[0].count == 1);
  CHECK(wide.buckets[2].count == 1);
  CHECK(wide.buckets[3].count == 1);
  const double tiny = std::numeric_limits<double>::denorm_min();
  const auto narrow = kernel::make_equal_histogram(of({0, tiny, 2 * tiny}), 30);
  double counted = 0;
  for (const auto& row : narrow.buckets) { counted += row.count; }
  CHECK(counted == 3);
}
