// SPDX-License-Identifier: Apache-2.0
#include "stepwell/kernel/moments.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <xsimd/xsimd.hpp>

namespace stepwell::kernel {
namespace {

using batch = xsimd::batch<double>;

/// Returns the sum of all lanes. xsimd 9 renamed the function.
double sum_of(const batch& values) noexcept {
#if XSIMD_VERSION_MAJOR >= 9
  return xsimd::reduce_add(values);
#else
  return xsimd::hadd(values);
#endif
}

// The statistics, one partial result for each vector lane.
struct lanes {
  batch min = batch(std::numeric_limits<double>::max());
  batch max = batch(std::numeric_limits<double>::lowest());
  batch sum = batch(0.0);
  batch sum_squares = batch(0.0);
  batch count = batch(0.0);  // exact below 2^53 values

  void take(const batch& values) noexcept {
    const auto finite = xsimd::abs(values) <= batch(std::numeric_limits<double>::max());
    const auto kept = xsimd::select(finite, values, batch(0.0));
    sum = sum + kept;
    sum_squares = sum_squares + kept * kept;
    count = count + xsimd::select(finite, batch(1.0), batch(0.0));
    min = xsimd::select(finite, xsimd::min(min, kept), min);
    max = xsimd::select(finite, xsimd::max(max, kept), max);
  }
};

void take(moments_of_values& all, double value) noexcept {
  if (!std::isfinite(value)) { return; }
  all.sum += value;
  all.sum_squares += value * value;
  ++all.count;
  all.min = std::min(all.min, value);
  all.max = std::max(all.max, value);
}

void add(moments_of_values& all, const lanes& part) noexcept {
  double min[batch::size];
  double max[batch::size];
  part.min.store_unaligned(min);
  part.max.store_unaligned(max);
  all.min = std::min(all.min, *std::ranges::min_element(min));
  all.max = std::max(all.max, *std::ranges::max_element(max));
  all.sum += sum_of(part.sum);
  all.sum_squares += sum_of(part.sum_squares);
  all.count += static_cast<std::uint64_t>(sum_of(part.count));
}

template<class T>
moments_of_values moments_of(std::span<const T> values) noexcept {
  constexpr std::size_t stride = 2 * batch::size;
  const std::size_t whole = values.size() - values.size() % stride;
  moments_of_values all;
  lanes even;
  lanes odd;  // two independent sets, so that consecutive additions can overlap
  for (std::size_t i = 0; i < whole; i += stride) {
    even.take(batch::load_unaligned(&values[i]));
    odd.take(batch::load_unaligned(&values[i] + batch::size));
  }
  add(all, even);
  add(all, odd);
  for (const T value : values.subspan(whole)) { take(all, static_cast<double>(value)); }
  all.nonfinite = values.size() - all.count;
  return all;
}

}  // namespace

moments_of_values moments(std::span<const float> values) noexcept { return moments_of(values); }
moments_of_values moments(std::span<const double> values) noexcept { return moments_of(values); }

}  // namespace stepwell::kernel
