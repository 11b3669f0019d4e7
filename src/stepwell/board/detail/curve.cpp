// SPDX-License-Identifier: Apache-2.0
#include "stepwell/board/detail/curve.hpp"

#include "stepwell/format/detail/coding.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <utility>

namespace stepwell::board {
namespace {

void append(std::string& out, double number) { format::append_fixed(out, std::bit_cast<std::uint64_t>(number)); }

}  // namespace

curve_bucket bucket_of(std::span<const curve_point> points) {
  curve_bucket made{.first = points.front(), .last = points.back()};
  double sum = 0;
  for (const auto& [step, time, value] : points) {
    if (std::isfinite(value)) {
      made.min = made.finite == 0 ? value : std::min(made.min, value);
      made.max = made.finite == 0 ? value : std::max(made.max, value);
      ++made.finite;
      sum += value;
    } else {
      ++(std::isnan(value) ? made.nan : value > 0 ? made.pos_inf : made.neg_inf);
    }
  }
  if (made.finite > 0) { made.mean = std::clamp(sum / static_cast<double>(made.finite), made.min, made.max); }  // a sum may overflow
  return made;
}

std::vector<curve_bucket> reduce(std::span<const curve_point> points, std::size_t most) {
  const auto count = std::min(most, points.size());
  std::vector<curve_bucket> made;
  made.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto begin = points.size() * i / count;
    const auto end = points.size() * (i + 1) / count;
    made.push_back(bucket_of(points.subspan(begin, end - begin)));
  }
  return made;
}

void curve::add(const curve_point& point) {
  if (points_.empty() || points_.back().step <= point.step) { return points_.push_back(point); }
  points_.insert(std::ranges::upper_bound(points_, point.step, {}, &curve_point::step), point);
}

bool curve::cut(std::int64_t step) {
  const auto first = std::ranges::lower_bound(points_, step, {}, &curve_point::step);
  if (first == points_.end()) { return false; }
  points_.erase(first, points_.end());
  ++revision_;
  return true;
}

void curve::thin_out(std::size_t most) {
  if (points_.size() <= most) { return; }
  constexpr std::size_t neighbours = 4;
  std::vector<curve_point> kept;
  kept.reserve(points_.size());
  for (std::size_t begin = 0; begin < points_.size(); begin += neighbours) {
    const auto part = std::span(points_).subspan(begin, std::min(neighbours, points_.size() - begin));
    const auto all = bucket_of(part);
    bool needs_min = true;
    bool needs_max = all.min != all.max;
    bool needs_bad = true;
    for (const auto& point : part) {
      bool& is_needed = !std::isfinite(point.value) ? needs_bad : point.value == all.min ? needs_min : needs_max;
      const bool is_extreme = !std::isfinite(point.value) || point.value == all.min || point.value == all.max;
      if (is_extreme && std::exchange(is_needed, false)) { kept.push_back(point); }
    }
  }
  points_ = std::move(kept);
  ++revision_;
}

std::span<const curve_point> curve::points_in(const curve_range& range) const {
  const auto place_of = [&](const curve_point& point) {
    return range.axis == curve_axis::step ? static_cast<double>(point.step) : point.time;
  };
  auto begin = points_.begin();
  auto end = points_.end();
  if (range.from) {
    begin = std::ranges::find_if(points_, [&](const auto& point) { return place_of(point) >= *range.from; });
  }
  if (range.to) {
    while (end != begin && place_of(*(end - 1)) > *range.to) { --end; }
  }
  if (begin != points_.begin()) { --begin; }
  if (end != points_.end()) { ++end; }
  return {begin, end};
}

std::string encode_buckets(std::span<const curve_bucket> buckets, std::size_t total, std::uint64_t revision) {
  std::string out = "SWC1";
  out.reserve(32 + buckets.size() * 12 * sizeof(double));
  format::append_fixed(out, static_cast<std::uint32_t>(buckets.size()));
  append(out, static_cast<double>(total));
  append(out, static_cast<double>(revision));
  append(out, 0.0);
  const auto add_column = [&](auto number_of) {
    for (const auto& bucket : buckets) { append(out, static_cast<double>(number_of(bucket))); }
  };
  add_column([](const auto& of) { return of.first.step; });
  add_column([](const auto& of) { return of.last.step; });
  add_column([](const auto& of) { return of.first.time; });
  add_column([](const auto& of) { return of.last.time; });
  add_column([](const auto& of) { return of.min; });
  add_column([](const auto& of) { return of.max; });
  add_column([](const auto& of) { return of.mean; });
  add_column([](const auto& of) { return of.last.value; });
  add_column([](const auto& of) { return of.finite; });
  add_column([](const auto& of) { return of.nan; });
  add_column([](const auto& of) { return of.pos_inf; });
  add_column([](const auto& of) { return of.neg_inf; });
  return out;
}

}  // namespace stepwell::board
