// SPDX-License-Identifier: Apache-2.0
#include "stepwell/kernel/finite.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <xsimd/xsimd.hpp>

namespace stepwell::kernel {
namespace {

struct is_finite {
  template<class T>
  auto operator()(const xsimd::batch<T>& values) const noexcept {
    return xsimd::abs(values) <= xsimd::batch<T>(std::numeric_limits<T>::max());
  }
  template<std::floating_point T>
  bool operator()(T value) const noexcept {
    return std::isfinite(value);
  }
};

struct is_number {
  template<class T>
  auto operator()(const xsimd::batch<T>& values) const noexcept {
    return values == values;  // NOLINT(misc-redundant-expression): false for NaN
  }
  template<std::floating_point T>
  bool operator()(T value) const noexcept {
    return !std::isnan(value);
  }
};

// Tests four batches per branch, because nearly all arrays pass the test.
template<class T, class Test>
bool all_of(std::span<const T> values, Test test) noexcept {
  using batch = xsimd::batch<T>;
  constexpr std::size_t stride = 4 * batch::size;
  const std::size_t whole = values.size() - values.size() % stride;
  for (std::size_t i = 0; i < whole; i += stride) {
    const T* const at = &values[i];
    const auto good = test(batch::load_unaligned(at)) & test(batch::load_unaligned(at + batch::size)) &
                      test(batch::load_unaligned(at + 2 * batch::size)) & test(batch::load_unaligned(at + 3 * batch::size));
    if (!xsimd::all(good)) { return false; }
  }
  return std::ranges::all_of(values.subspan(whole), test);
}

}  // namespace

bool all_finite(std::span<const float> values) noexcept { return all_of(values, is_finite{}); }
bool all_finite(std::span<const double> values) noexcept { return all_of(values, is_finite{}); }
bool any_nan(std::span<const float> values) noexcept { return !all_of(values, is_number{}); }
bool any_nan(std::span<const double> values) noexcept { return !all_of(values, is_number{}); }

}  // namespace stepwell::kernel
