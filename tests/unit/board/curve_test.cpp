// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"

#include <stepwell/board/detail/curve.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

using namespace stepwell::board;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

curve curve_of(const std::vector<double>& values) {
  curve made;
  for (std::size_t i = 0; i < values.size(); ++i) {
    made.add({static_cast<std::int64_t>(i + 1), 100.0 + static_cast<double>(i), values[i]});
  }
  return made;
}

}  // namespace

TEST_CASE("a curve that has become too long keeps its extremes, and where it was not finite", "[board][curve]") {
  curve all;
  for (int step = 0; step < 1000; ++step) {
    const double value = step == 501 ? 99.0 : step == 777 ? -99.0 : step == 300 ? std::nan("") : std::sin(step);
    all.add({step, 1.0 * step, value});
  }
  all.thin_out(1000);
  CHECK(all.points().size() == 1000);
  all.thin_out(999);
  CHECK(all.points().size() <= 501);
  CHECK(all.all().max == 99);
  CHECK(all.all().min == -99);
  CHECK(all.all().nan == 1);
  CHECK(std::ranges::is_sorted(all.points(), {}, &curve_point::step));
}

TEST_CASE("the mean and the counts of a curve do not change when it becomes too long, and its ends stay", "[board][curve]") {
  for (int rounds = 0; rounds <= 3; ++rounds) {
    CAPTURE(rounds);
    curve all;
    for (int i = 0; i < 16'000; ++i) { all.add({i, 1.0 * i, i % 1000 == 500 ? not_a_number : i % 10 == 9 ? 1.0 : 0.0}); }
    for (int round = 0; round < rounds; ++round) { all.thin_out(1); }
    const auto bucket = all.all();
    CHECK(bucket.mean == Approx(1600.0 / 15'984));
    CHECK(bucket.finite == 15'984);
    CHECK(bucket.nan == 16);
    CHECK(bucket.first.step == 0);
    CHECK(bucket.last.step == 15'999);
    CHECK(all.extremes().non_finite == 16);
    for (const auto& tenth : reduce(all.part(), 10)) { CHECK(tenth.mean == Approx(0.1).margin(0.02)); }
  }
  auto few = curve_of({0, 1, 0.5, 0.5, 0, 1, 0.5, 0.25});
  few.thin_out(4);
  CHECK(few.points().back().step == 8);
  CHECK(few.all().mean == 3.75 / 8);
  few.add({9, 108, 7.25});
  CHECK(few.all().mean == 11.0 / 9);
  curve other;
  other.add({1, 100, 3});
  other.add_points_of(few, 8);
  CHECK(other.points().size() == 2);
  CHECK(bucket_of(curve_of({1e308, 1e308, -1e308, -1e308}).points()).mean == 0);
}

TEST_CASE("the extremes of a curve are known without a look at its points, also after steps are made again", "[board][curve]") {
  auto all = curve_of({3, not_a_number, 9, -2, 9, infinity});
  CHECK(all.extremes().min == -2);
  CHECK(all.extremes().min_step == 4);
  CHECK(all.extremes().max == 9);
  CHECK(all.extremes().max_step == 3);
  CHECK(all.extremes().non_finite == 2);
  CHECK(all.cut(3));
  CHECK(all.extremes().max == 3);
  CHECK(all.extremes().non_finite == 1);
  CHECK(all.cut(1));
  CHECK(std::isnan(all.extremes().max));
}

TEST_CASE("a spike of one step among a million is in one bucket, and zoom shows its step", "[board][curve]") {
  std::vector<double> values(1'000'000, 1.0);
  values[654'320] = 50;
  values[123'456] = -7;
  const auto all = curve_of(values);
  const auto buckets = reduce(all.points(), 1000);
  REQUIRE(buckets.size() == 1000);
  std::size_t points = 0;
  int spikes = 0;
  for (const auto& bucket : buckets) {
    points += bucket.finite;
    if (bucket.max == 50) { ++spikes; }
  }
  CHECK(points == values.size());
  CHECK(spikes == 1);
  CHECK(bucket_of(all.points()).min == -7);
  const auto zoomed = reduce(all.points_in({.from = 654'300, .to = 654'400}), 1000);
  const auto spike = std::ranges::find(zoomed, 50.0, &curve_bucket::max);
  REQUIRE(spike != zoomed.end());
  CHECK(spike->first.step == 654'321);
  CHECK(spike->last.step == 654'321);
}

TEST_CASE("values that are not finite are counted where they are, and do not change the other numbers", "[board][curve]") {
  const auto bucket = bucket_of(curve_of({1, not_a_number, 3, infinity, -infinity, not_a_number}).points());
  CHECK(bucket.min == 1);
  CHECK(bucket.max == 3);
  CHECK(bucket.mean == 2);
  CHECK(bucket.finite == 2);
  CHECK(bucket.nan == 2);
  CHECK(bucket.pos_inf == 1);
  CHECK(bucket.neg_inf == 1);
  CHECK(std::isnan(bucket.last.value));
  CHECK(std::isnan(bucket_of(curve_of({not_a_number}).points()).min));
  CHECK(std::isfinite(bucket_of(curve_of({1e308, 1e308, 1e308}).points()).mean));
}

TEST_CASE("a range has one point before and one after it, so that lines reach the edge", "[board][curve]") {
  const auto all = curve_of({1, 2, 3, 4, 5, 6});
  CHECK(all.points_in({.from = 3, .to = 4}).points.front().step == 2);
  CHECK(all.points_in({.from = 3, .to = 4}).points.back().step == 5);
  CHECK(all.points_in({.from = -5, .to = 100}).points.size() == 6);
  CHECK(all.points_in({.axis = curve_axis::time, .from = 104}).points.front().step == 4);
  CHECK(all.points_in({.from = 100}).points.size() == 1);
  CHECK(all.points_in({.to = -1}).points.size() == 1);
  CHECK(curve().points_in({.from = 1, .to = 2}).points.empty());
}

TEST_CASE("points are in the order of their steps, and those of steps that are made again can be removed", "[board][curve]") {
  curve all;
  all.add({1, 0, 1});
  all.add({3, 0, 3});
  all.add({2, 0, 2});
  all.add({3, 0, 4});
  REQUIRE(all.points().size() == 4);
  CHECK(all.points()[1].step == 2);
  CHECK(all.points()[3].value == 4);
  const auto before = all.revision();
  CHECK_FALSE(all.cut(4));
  CHECK(all.revision() == before);
  CHECK(all.cut(2));
  CHECK(all.points().size() == 1);
  CHECK(all.revision() != before);
}

TEST_CASE("the binary form has a header and twelve columns", "[board][curve]") {
  const auto all = curve_of({1, 5, not_a_number});
  const auto text = encode_buckets(reduce(all.points(), 2), {.total = 3, .revision = 7, .fixed_points = 2, .fixed_buckets = 1});
  REQUIRE(text.size() == 32 + 2 * 12 * sizeof(double));
  CHECK(text.substr(0, 4) == "SWC1");
  const auto number = [&](std::size_t column, std::size_t row) {
    double value;
    std::memcpy(&value, text.data() + 32 + (column * 2 + row) * sizeof value, sizeof value);
    return value;
  };
  double header[2];
  std::memcpy(header, text.data() + 8, sizeof header);
  CHECK(header[0] == 3);
  CHECK(header[1] == 7);
  std::uint32_t fixed[2];
  std::memcpy(fixed, text.data() + 24, sizeof fixed);
  CHECK(fixed[0] == 2);
  CHECK(fixed[1] == 1);
  CHECK(number(0, 0) == 1);    // step_first
  CHECK(number(1, 1) == 3);    // step_last
  CHECK(number(2, 0) == 100);  // time_first
  CHECK(number(5, 1) == 5);    // max
  CHECK(std::isnan(number(7, 1)));
  CHECK(number(9, 1) == 1);  // nan
}
