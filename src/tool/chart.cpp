// SPDX-License-Identifier: Apache-2.0
#include "tool/chart.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>

namespace stepwell::tool {
namespace {

void append(point_group& group, const point_group& next) {
  group.last_x = next.last_x;
  group.last = next.last;
  group.min = std::min(group.min, next.min);
  group.max = std::max(group.max, next.max);
  group.count += next.count;
}

constexpr double most = std::numeric_limits<double>::max();

/// Returns the smallest 1, 2 or 5 times a power of ten that is not below `least`.
double round_step(double least) {
  const double power = std::pow(10.0, std::floor(std::log10(least)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= least * (1 - 1e-9)) { return factor * power; }
  }
  return 10 * power;
}

/// Returns the text of a tick, with as many decimals as distinguish ticks that are `step` apart. Large and small values have a unit or a
/// power of ten.
std::string tick_text(double value, double step, double greatest) {
  if (std::abs(value) < step * 1e-6) { return "0"; }
  const double digits = -std::floor(std::log10(step) + 1e-9);
  if (greatest < 1e6 && digits <= 5) { return fmt::format("{:.{}f}", value, std::max(0, static_cast<int>(digits))); }
  constexpr std::pair<double, const char*> units[] = {{1e12, "T"}, {1e9, "G"}, {1e6, "M"}};
  for (const auto& [size, unit] : units) {
    const double left = digits + std::log10(size);  // decimals in this unit
    if (greatest >= size && greatest < 1e15 && left >= -3 && left <= 4) {
      return fmt::format("{:.{}f}{}", value / size, std::max(0, static_cast<int>(left + 1e-9)), unit);
    }
  }
  const int precise = static_cast<int>(std::clamp(std::floor(std::log10(greatest)) + digits, 0.0, 15.0));
  return fmt::format("{:.{}e}", value, precise);
}

}  // namespace

void series::add(double x, double y) {
  if (!std::isfinite(y) || !std::isfinite(x)) {
    ++not_finite_;
    return;
  }
  if (is_positive_only_ && y <= 0) {
    ++not_positive_;
    return;
  }
  const point_group one{x, x, y, y, y, y, 1};
  if (!groups_.empty() && groups_.back().count < per_group_) {
    append(groups_.back(), one);
    return;
  }
  if (groups_.size() >= most_) { halve(); }
  if (!groups_.empty() && groups_.back().count < per_group_) {
    append(groups_.back(), one);
  } else {
    groups_.push_back(one);
  }
}

void series::halve() {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < groups_.size(); i += 2, ++kept) {
    auto group = groups_[i];
    if (i + 1 < groups_.size()) { append(group, groups_[i + 1]); }
    groups_[kept] = group;
  }
  groups_.resize(kept);
  per_group_ *= 2;
}

void series::cut_from(double x) {
  std::erase_if(groups_, [&](const point_group& group) { return group.first_x >= x; });
  for (auto& group : groups_) {  // a group that contains the cut: its first point stays
    if (group.last_x < x) { continue; }
    group.last_x = group.first_x;
    group.last = group.min = group.max = group.first;
    group.count = 1;
  }
}

std::uint64_t series::points() const noexcept {
  std::uint64_t sum = 0;
  for (const auto& group : groups_) { sum += group.count; }
  return sum;
}

void range::add(double value) noexcept {
  low = std::min(low, value);
  high = std::max(high, value);
}

range x_range(const std::vector<series>& lines) noexcept {
  range found;
  for (const auto& line : lines) {
    for (const auto& group : line.groups()) {
      found.add(group.first_x);
      found.add(group.last_x);
    }
  }
  return found;
}

range y_range(const std::vector<series>& lines) noexcept {
  range found;
  for (const auto& line : lines) {
    for (const auto& group : line.groups()) {
      found.add(group.min);
      found.add(group.max);
    }
  }
  return found;
}

axis::axis(range values, std::size_t wanted, bool is_round, bool is_logarithmic) : is_logarithmic_(is_logarithmic) {
  wanted = std::max<std::size_t>(wanted, 2);
  if (is_logarithmic_) {
    make_logarithmic(values, wanted);
  } else {
    make_linear(values, wanted, is_round);
  }
}

double axis::place_of(double value) const noexcept {
  const double at = is_logarithmic_ ? std::log10(value) : value;
  return at / 2 == low_ / 2 ? 0 : (at / 2 - low_ / 2) / (high_ / 2 - low_ / 2);  // divided by 2, because the range may overflow
}

void axis::add_tick(double value, std::string text) {
  const double place = place_of(value);
  if (place > -1e-6 && place < 1 + 1e-6) { ticks_.push_back({value, std::clamp(place, 0.0, 1.0), std::move(text)}); }
}

std::int64_t step_of(double x, std::int64_t origin) noexcept {
  std::int64_t sum = 0;
  constexpr double most_steps = 9.2e18;
  const bool fits = std::abs(x) < most_steps && !__builtin_add_overflow(origin, static_cast<std::int64_t>(std::round(x)), &sum);
  return fits ? sum : x < 0 ? INT64_MIN : INT64_MAX;
}

void axis::count_from(std::int64_t origin) {
  if (origin == 0) { return; }
  std::erase_if(ticks_, [](const tick& one) { return std::abs(one.value - std::round(one.value)) > 1e-6; });
  for (auto& one : ticks_) { one.text = std::to_string(step_of(one.value, origin)); }
}

void axis::make_linear(range values, std::size_t wanted, bool is_round) {
  if (values.high / 2 - values.low / 2 <= std::max(std::abs(values.low), std::abs(values.high)) * 1e-13) {  // a single value
    const double margin = values.low == 0 ? 1 : std::abs(values.low) * 0.1;
    values.low = std::max(values.low - margin, -most);
    values.high = std::min(values.high + margin, most);
  }
  const double step = round_step(std::max((values.high / 2 - values.low / 2) / static_cast<double>(wanted - 1) * 2, 1e-300));
  low_ = is_round ? std::max(std::floor(values.low / step + 1e-9) * step, -most) : values.low;
  high_ = is_round ? std::min(std::ceil(values.high / step - 1e-9) * step, most) : values.high;
  const double greatest = std::max(std::abs(low_), std::abs(high_));
  const double first = std::ceil(low_ / step - 1e-9);
  for (int i = 0; i < 100; ++i) {
    const double value = (first + i) * step;
    if (!(value <= high_ + step * 1e-6)) { break; }
    add_tick(value, tick_text(value, step, greatest));
  }
}

void axis::make_logarithmic(range values, std::size_t wanted) {
  low_ = std::log10(values.low);
  high_ = std::log10(values.high);
  if (high_ - low_ < 1e-9) {
    low_ -= 0.5;
    high_ += 0.5;
  }
  const auto decades = std::floor(high_ + 1e-9) - std::ceil(low_ - 1e-9) + 1;
  const auto every = std::max(1.0, std::ceil(decades / static_cast<double>(wanted)));
  for (double power = std::ceil(low_ - 1e-9); power <= high_ + 1e-9; power += every) {
    add_tick(std::pow(10.0, power), std::abs(power) < 5 ? fmt::format("{:g}", std::pow(10.0, power)) : fmt::format("1e{}", power));
  }
  if (ticks_.size() >= 2) { return; }
  ticks_.clear();  // within one decade: the ends and the middle
  for (const double at : {low_, (low_ + high_) / 2, high_}) { add_tick(std::pow(10.0, at), fmt::format("{:.3g}", std::pow(10.0, at))); }
}

}  // namespace stepwell::tool
