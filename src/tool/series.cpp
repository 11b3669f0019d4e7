// SPDX-License-Identifier: Apache-2.0
#include "tool/series.hpp"

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

}  // namespace stepwell::tool
