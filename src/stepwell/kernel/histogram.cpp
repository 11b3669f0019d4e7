// SPDX-License-Identifier: Apache-2.0
#include "stepwell/kernel/histogram.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <cstdint>
#include <limits>

namespace stepwell::kernel {
namespace {

constexpr double greatest = std::numeric_limits<double>::max();
constexpr std::size_t limit_count = 1551;

std::array<double, limit_count> make_limits() {
  std::array<double, limit_count> limits{};
  constexpr auto middle = limit_count / 2;
  std::size_t i = 1;
  // Multiplies repeatedly instead of computing powers, because the rounding errors are part of the format.
  for (double limit = 1e-12; limit < 1e20; limit *= 1.1, ++i) {
    limits[middle + i] = limit;
    limits[middle - i] = -limit;
  }
  assert(i == middle);
  limits.back() = greatest;
  limits.front() = -greatest;
  return limits;
}

// Returns the bucket of a finite value: the bucket of the first limit greater than the value. No limit exceeds the greatest double, so
// that value belongs to the last bucket.
std::size_t growing_bucket_of(double value, std::span<const double> limits) noexcept {
  const auto at = std::upper_bound(limits.begin(), limits.end(), value) - limits.begin();
  return std::min(static_cast<std::size_t>(at), limit_count - 1);
}

void fold(std::span<const double> limits, std::span<const std::uint64_t> counts, growing_histogram& folded) {
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const bool goes_on = counts[i] == 0 && i + 1 < counts.size() && counts[i + 1] == 0;
    if (goes_on) { continue; }
    folded.limits.push_back(limits[i]);
    folded.counts.push_back(static_cast<double>(counts[i]));
  }
}

template<class T>
growing_histogram growing(std::span<const T> values) {
  const auto limits = histogram_limits();
  std::array<std::uint64_t, limit_count> counts{};
  for (const T value : values) {
    if (std::isfinite(value)) { ++counts[growing_bucket_of(static_cast<double>(value), limits)]; }
  }
  growing_histogram made;
  made.stats = moments(values);
  fold(limits, counts, made);
  return made;
}

// A range divided into k equal parts. Computes with half of each value, so that a range wider than the greatest double does not overflow.
class ruler {
public:
  ruler(double min, double max, std::size_t k) noexcept
      : min_(min), max_(max), half_width_((max / 2 - min / 2) / static_cast<double>(k)), k_(k) {}

  [[nodiscard]] double edge(std::size_t i) const noexcept { return i == k_ ? max_ : min_ + 2 * (static_cast<double>(i) * half_width_); }

  [[nodiscard]] std::size_t bucket_of(double value) const noexcept {
    const double last = static_cast<double>(k_ - 1);
    const double place = half_width_ > 0 ? std::floor((value / 2 - min_ / 2) / half_width_) : last;
    return static_cast<std::size_t>(std::min(place, last));
  }

private:
  double min_;
  double max_;
  double half_width_;
  std::size_t k_;
};

template<class T>
equal_histogram equal(std::span<const T> values, std::size_t k) {
  assert(k > 0);
  equal_histogram made{moments(values), std::vector<equal_bucket>(k)};
  if (made.stats.count == 0) { return made; }
  const ruler cut(made.stats.min, made.stats.max, k);
  for (std::size_t i = 0; i < k; ++i) { made.buckets[i] = {cut.edge(i), cut.edge(i + 1), 0}; }
  for (const T value : values) {
    if (std::isfinite(value)) { made.buckets[cut.bucket_of(static_cast<double>(value))].count += 1; }
  }
  return made;
}

}  // namespace

std::span<const double> histogram_limits() {
  static const auto limits = make_limits();
  return limits;
}

growing_histogram make_growing_histogram(std::span<const float> values) { return growing(values); }
growing_histogram make_growing_histogram(std::span<const double> values) { return growing(values); }
equal_histogram make_equal_histogram(std::span<const float> values, std::size_t k) { return equal(values, k); }
equal_histogram make_equal_histogram(std::span<const double> values, std::size_t k) { return equal(values, k); }

}  // namespace stepwell::kernel
