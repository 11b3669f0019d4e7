// SPDX-License-Identifier: Apache-2.0
#include "stepwell/board/detail/curve.hpp"

#include "stepwell/format/detail/coding.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>
#include <utility>

namespace stepwell::board {
namespace {

curve_share share_of_value(double value) {
  if (std::isfinite(value)) { return {.mean = value, .finite = 1}; }
  return {.nan = std::isnan(value) ? 1U : 0U, .pos_inf = value > 0 ? 1U : 0U, .neg_inf = value < 0 ? 1U : 0U};
}

curve_share share_of_point(const curve_part& part, std::size_t index) {
  return part.shares.empty() ? share_of_value(part.points[index].value) : part.shares[index];
}

/// Returns the sum of `shares(0)`, `shares(1)` and so on.
template<class Shares>
curve_share sum_of(std::size_t count, const Shares& shares) {
  curve_share all;
  double sum = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const curve_share one = shares(i);
    all.finite += one.finite;
    all.nan += one.nan;
    all.pos_inf += one.pos_inf;
    all.neg_inf += one.neg_inf;
    sum += one.mean * one.finite;
  }
  if (all.finite == 0) { return all; }
  all.mean = sum / all.finite;
  if (std::isfinite(sum)) { return all; }
  all.mean = 0;  // the sum of very large values overflows, their mean does not
  for (std::size_t i = 0; i < count; ++i) { all.mean += shares(i).mean * (static_cast<double>(shares(i).finite) / all.finite); }
  return all;
}

void append(std::string& out, double number) { format::append_fixed(out, std::bit_cast<std::uint64_t>(number)); }

}  // namespace

curve_bucket bucket_of(const curve_part& part) {
  curve_bucket made{.first = part.points.front(), .last = part.points.back()};
  for (const auto& [step, time, value] : part.points) {
    if (!std::isfinite(value)) { continue; }
    made.min = std::isnan(made.min) ? value : std::min(made.min, value);
    made.max = std::isnan(made.max) ? value : std::max(made.max, value);
  }
  const auto sum = sum_of(part.points.size(), [&](std::size_t i) { return share_of_point(part, i); });
  made.finite = sum.finite;
  made.nan = sum.nan;
  made.pos_inf = sum.pos_inf;
  made.neg_inf = sum.neg_inf;
  if (made.finite > 0) { made.mean = std::clamp(sum.mean, made.min, made.max); }  // because of rounding
  return made;
}

std::vector<curve_bucket> reduce(const curve_part& part, std::size_t most) {
  const auto points = part.points.size();
  const auto count = std::min(most, points);
  std::vector<curve_bucket> made;
  made.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto begin = points * i / count;
    const auto end = points * (i + 1) / count;
    made.push_back(bucket_of(part.part(begin, end - begin)));
  }
  return made;
}

void curve_extremes::add(const curve_extremes& later) {
  non_finite += later.non_finite;
  if (std::isnan(min) || later.min < min) {
    min = later.min;
    min_step = later.min_step;
  }
  if (std::isnan(max) || later.max > max) {
    max = later.max;
    max_step = later.max_step;
  }
}

std::uint64_t curve::new_revision() noexcept {
  static std::atomic<std::uint64_t> newest = 0;
  return newest.fetch_add(1, std::memory_order_relaxed) + 1;
}

void curve::add(const curve_point& point) { insert(point, share_of_value(point.value)); }

void curve::insert(const curve_point& point, const curve_share& share) {
  const bool is_finite = std::isfinite(point.value);
  const double value = is_finite ? point.value : std::numeric_limits<double>::quiet_NaN();
  extremes_.add({value, value, point.step, point.step, std::size_t{share.nan} + share.pos_inf + share.neg_inf});
  const bool is_last = points_.empty() || points_.back().step <= point.step;
  const auto place = is_last ? points_.end() : std::ranges::upper_bound(points_, point.step, {}, &curve_point::step);
  if (place != points_.end()) { revision_ = new_revision(); }
  const bool is_plain = share.finite + share.nan + share.pos_inf + share.neg_inf == 1;
  if (!is_plain && shares_.empty()) {
    for (const auto& one : points_) { shares_.push_back(share_of_value(one.value)); }
  }
  if (!is_plain || !shares_.empty()) { shares_.insert(shares_.begin() + (place - points_.begin()), share); }
  points_.insert(place, point);
}

curve_share curve::share_of(std::size_t index) const { return share_of_point(part(), index); }

void curve::add_points_of(const curve& other, std::optional<std::int64_t> after) {
  const auto first = after ? std::ranges::upper_bound(other.points_, *after, {}, &curve_point::step) : other.points_.begin();
  for (auto at = first; at != other.points_.end(); ++at) {
    insert(*at, other.share_of(static_cast<std::size_t>(at - other.points_.begin())));
  }
}

bool curve::cut(std::int64_t step) {
  const auto first = std::ranges::lower_bound(points_, step, {}, &curve_point::step);
  if (first == points_.end()) { return false; }
  const auto count = static_cast<std::size_t>(first - points_.begin());
  points_.resize(count);
  if (!shares_.empty()) { shares_.resize(count); }
  curve rest;
  rest.add_points_of(*this);
  extremes_ = rest.extremes_;
  revision_ = new_revision();
  return true;
}

void curve::thin_out(std::size_t most) {
  if (points_.size() <= most) { return; }
  constexpr std::size_t neighbours = 4;
  std::vector<curve_point> kept;
  std::vector<curve_share> shares;
  for (std::size_t begin = 0; begin < points_.size(); begin += neighbours) {
    const auto four = part().part(begin, std::min(neighbours, points_.size() - begin));
    const auto all = bucket_of(four);
    const auto first_kept = kept.size();
    bool needs_min = true;
    bool needs_max = all.min != all.max;
    bool needs_bad = true;
    std::uint32_t finite = 0;
    std::uint32_t bad = 0;
    for (const auto& point : four.points) {
      const bool is_end = &point == &points_.front() || &point == &points_.back();
      bool& is_needed = !std::isfinite(point.value) ? needs_bad : point.value == all.min ? needs_min : needs_max;
      const bool is_extreme = !std::isfinite(point.value) || point.value == all.min || point.value == all.max;
      const bool is_kept = is_extreme && std::exchange(is_needed, false);
      if (!is_kept && !is_end) { continue; }
      kept.push_back(point);
      ++(std::isfinite(point.value) ? finite : bad);
    }
    // The values of all four, divided among the points that stay.
    auto rest = sum_of(four.points.size(), [&](std::size_t i) { return share_of_point(four, i); });
    for (auto at = first_kept; at < kept.size(); ++at) {
      auto share = share_of_value(kept[at].value);
      if (share.finite > 0) {
        share = {.mean = rest.mean, .finite = rest.finite / finite--};
      } else if (--bad == 0) {
        share = {.nan = rest.nan, .pos_inf = rest.pos_inf, .neg_inf = rest.neg_inf};
      }
      rest.finite -= share.finite;
      rest.nan -= share.nan;
      rest.pos_inf -= share.pos_inf;
      rest.neg_inf -= share.neg_inf;
      shares.push_back(share);
    }
  }
  points_ = std::move(kept);
  shares_ = std::move(shares);
  revision_ = new_revision();
}

std::optional<std::int64_t> curve::last_step() const { return points_.empty() ? std::nullopt : std::optional(points_.back().step); }

curve_part curve::points_in(const curve_range& range) const {
  const auto place_of = [&](const curve_point& point) {
    return range.axis == curve_axis::step ? static_cast<double>(point.step) : point.time;
  };
  auto begin = points_.begin();
  auto end = points_.end();
  if (range.axis == curve_axis::step) {  // the steps are sorted; a clock may have been set back
    if (range.from) { begin = std::ranges::lower_bound(points_, *range.from, {}, place_of); }
    if (range.to) { end = std::ranges::upper_bound(begin, points_.end(), *range.to, {}, place_of); }
  } else {
    if (range.from) {
      begin = std::ranges::find_if(points_, [&](const auto& point) { return place_of(point) >= *range.from; });
    }
    if (range.to) {
      while (end != begin && place_of(*(end - 1)) > *range.to) { --end; }
    }
  }
  if (begin != points_.begin()) { --begin; }
  if (end != points_.end()) { ++end; }
  return part().part(static_cast<std::size_t>(begin - points_.begin()), static_cast<std::size_t>(end - begin));
}

std::string encode_buckets(std::span<const curve_bucket> buckets, const curve_header& header) {
  std::string out = "SWC1";
  out.reserve(32 + buckets.size() * 12 * sizeof(double));
  format::append_fixed(out, static_cast<std::uint32_t>(buckets.size()));
  append(out, static_cast<double>(header.total));
  append(out, static_cast<double>(header.revision));
  format::append_fixed(out, static_cast<std::uint32_t>(header.fixed_points));
  format::append_fixed(out, static_cast<std::uint32_t>(header.fixed_buckets));
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
