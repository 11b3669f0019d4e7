// SPDX-License-Identifier: Apache-2.0
#include "stepwell/kernel/statistics.hpp"

#include "stepwell/base/error.hpp"
#include "stepwell/kernel/detail/average.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>
#include <xsimd/xsimd.hpp>

namespace stepwell::kernel {
namespace {

// Tests of a value or of a batch of values.
template<class T>
constexpr auto is_finite = [](const auto& value) {
  using std::abs;
  return abs(value) <= std::numeric_limits<T>::max();
};
constexpr auto is_number = [](const auto& value) { return value == value; };  // NOLINT(misc-redundant-expression): false for NaN

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

// Returns true if all elements pass: `whole` tests spans of floats and doubles, `one` tests a float. Complex numbers are pairs of numbers.
template<class Whole, class One>
bool all_elements(const elements_view& values, Whole whole, One one) {
  const auto as = [&]<class Element>(std::type_identity<Element>) {
    return std::span(reinterpret_cast<const Element*>(values.bytes.data()), values.bytes.size() / sizeof(Element));
  };
  const auto type = values.dtype;
  if (type == dtype::float32 || type == dtype::complex64) { return whole(as(std::type_identity<float>{})); }
  if (type == dtype::float64 || type == dtype::complex128) { return whole(as(std::type_identity<double>{})); }
  if (type == dtype::half) { return std::ranges::all_of(as(std::type_identity<std::uint16_t>{}), one, stepwell::detail::half_number); }
  if (type == dtype::bfloat16) {
    return std::ranges::all_of(as(std::type_identity<std::uint16_t>{}), one, stepwell::detail::bfloat16_number);
  }
  if (stepwell::detail::is_narrow_number(type)) {
    return std::ranges::all_of(as(std::type_identity<std::uint8_t>{}), one,
                               [type](std::uint8_t bits) { return stepwell::detail::narrow_number(type, bits); });
  }
  if (size_of(type) == 0) {
    throw invalid_argument_error("elements of " + std::string(to_string(type)) + " are not numbers; they cannot be tested for NaN");
  }
  return true;  // integers and booleans
}

constexpr double greatest = std::numeric_limits<double>::max();
using doubles = xsimd::batch<double>;

// xsimd 9 renamed the function.
double sum_of(const doubles& values) noexcept {
#if XSIMD_VERSION_MAJOR >= 9
  return xsimd::reduce_add(values);
#else
  return xsimd::hadd(values);
#endif
}

// The statistics, one partial result for each vector lane.
struct lanes {
  doubles min = doubles(greatest);
  doubles max = doubles(-greatest);
  doubles sum = doubles(0.0);
  doubles sum_squares = doubles(0.0);
  doubles count = doubles(0.0);  // exact below 2^53 values

  void take(const doubles& values) noexcept {
    const auto finite = xsimd::abs(values) <= doubles(greatest);
    const auto kept = xsimd::select(finite, values, doubles(0.0));
    sum = sum + kept;
    sum_squares = sum_squares + kept * kept;
    count = count + xsimd::select(finite, doubles(1.0), doubles(0.0));
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
  double min[doubles::size];
  double max[doubles::size];
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
  constexpr std::size_t stride = 2 * doubles::size;
  const std::size_t whole = values.size() - values.size() % stride;
  moments_of_values all;
  lanes even;
  lanes odd;  // two independent sets, so that consecutive additions can overlap
  for (std::size_t i = 0; i < whole; i += stride) {
    even.take(doubles::load_unaligned(&values[i]));
    odd.take(doubles::load_unaligned(&values[i] + doubles::size));
  }
  add(all, even);
  add(all, odd);
  for (const T value : values.subspan(whole)) { take(all, static_cast<double>(value)); }
  all.nonfinite = values.size() - all.count;
  return all;
}

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

template<class T>
growing_histogram growing(std::span<const T> values) {
  const auto limits = histogram_limits();
  std::array<std::uint64_t, limit_count> counts{};
  for (const T value : values) {
    if (!std::isfinite(value)) { continue; }
    // The bucket of the first limit greater than the value. No limit exceeds the greatest double, so that value belongs to the last bucket.
    const auto at = std::ranges::upper_bound(limits, static_cast<double>(value)) - limits.begin();
    ++counts[std::min(static_cast<std::size_t>(at), limit_count - 1)];
  }
  growing_histogram made{.stats = moments(values), .limits = {}, .counts = {}};
  for (std::size_t i = 0; i < limit_count; ++i) {
    const bool is_merged = counts[i] == 0 && i + 1 < limit_count && counts[i + 1] == 0;
    if (is_merged) { continue; }
    made.limits.push_back(limits[i]);
    made.counts.push_back(static_cast<double>(counts[i]));
  }
  return made;
}

template<class T>
equal_histogram equal(std::span<const T> values, std::size_t k) {
  assert(k > 0);
  equal_histogram made{moments(values), std::vector<equal_bucket>(k)};
  if (made.stats.count == 0) { return made; }
  const auto [min, max] = std::pair(made.stats.min, made.stats.max);
  // Computes with half of each value, so that a range wider than the greatest double does not overflow.
  const double half_width = (max / 2 - min / 2) / static_cast<double>(k);
  const auto edge = [&](std::size_t i) { return i == k ? max : min + 2 * (static_cast<double>(i) * half_width); };
  for (std::size_t i = 0; i < k; ++i) { made.buckets[i] = {edge(i), edge(i + 1), 0}; }
  const double last = static_cast<double>(k - 1);
  for (const T value : values) {
    if (!std::isfinite(value)) { continue; }
    const double place = half_width > 0 ? std::floor((static_cast<double>(value) / 2 - min / 2) / half_width) : last;
    made.buckets[static_cast<std::size_t>(std::min(place, last))].count += 1;
  }
  return made;
}

template<class T>
void move_all(std::span<T> averages, std::span<const T> values, T weight) noexcept {
  assert(averages.size() == values.size());
  using batch = xsimd::batch<T>;
  const std::size_t whole = values.size() - values.size() % batch::size;
  const batch weights(weight);
  for (std::size_t i = 0; i < whole; i += batch::size) {
    const auto average = batch::load_unaligned(&averages[i]);
    const auto moved = average + weights * (batch::load_unaligned(&values[i]) - average);
    moved.store_unaligned(&averages[i]);
  }
  for (std::size_t i = whole; i < values.size(); ++i) { averages[i] += weight * (values[i] - averages[i]); }
}

}  // namespace

bool all_finite(std::span<const float> values) noexcept { return all_of(values, is_finite<float>); }
bool all_finite(std::span<const double> values) noexcept { return all_of(values, is_finite<double>); }
bool all_finite(const elements_view& values) {
  return all_elements(values, [](auto elements) { return all_finite(elements); }, [](float value) { return std::isfinite(value); });
}
bool any_nan(const elements_view& values) {
  return !all_elements(values, [](auto elements) { return !any_nan(elements); }, [](float value) { return !std::isnan(value); });
}
double number_at(const elements_view& values, std::size_t index) {
  const auto as = [&]<class Element>(std::type_identity<Element>) {
    Element element;
    std::memcpy(&element, values.bytes.data() + index * sizeof element, sizeof element);
    return element;
  };
  const auto type = values.dtype;
  switch (type) {
    case dtype::float32: return static_cast<double>(as(std::type_identity<float>{}));
    case dtype::float64: return as(std::type_identity<double>{});
    case dtype::half: return static_cast<double>(stepwell::detail::half_number(as(std::type_identity<std::uint16_t>{})));
    case dtype::bfloat16: return static_cast<double>(stepwell::detail::bfloat16_number(as(std::type_identity<std::uint16_t>{})));
    case dtype::qint8:
    case dtype::int8: return as(std::type_identity<std::int8_t>{});
    case dtype::qint16:
    case dtype::int16: return as(std::type_identity<std::int16_t>{});
    case dtype::qint32:
    case dtype::int32: return as(std::type_identity<std::int32_t>{});
    case dtype::int64: return static_cast<double>(as(std::type_identity<std::int64_t>{}));
    case dtype::boolean:
    case dtype::quint8:
    case dtype::uint8: return as(std::type_identity<std::uint8_t>{});
    case dtype::quint16:
    case dtype::uint16: return as(std::type_identity<std::uint16_t>{});
    case dtype::uint32: return as(std::type_identity<std::uint32_t>{});
    case dtype::uint64: return static_cast<double>(as(std::type_identity<std::uint64_t>{}));
    default: break;
  }
  if (!stepwell::detail::is_narrow_number(type)) {
    throw invalid_argument_error("elements of " + std::string(to_string(type)) + " are not real numbers; convert them before");
  }
  return static_cast<double>(stepwell::detail::narrow_number(type, as(std::type_identity<std::uint8_t>{})));
}

bool any_nan(std::span<const float> values) noexcept { return !all_of(values, is_number); }
bool any_nan(std::span<const double> values) noexcept { return !all_of(values, is_number); }

moments_of_values moments(std::span<const float> values) noexcept { return moments_of(values); }
moments_of_values moments(std::span<const double> values) noexcept { return moments_of(values); }

std::span<const double> histogram_limits() {
  static const auto limits = make_limits();
  return limits;
}

growing_histogram make_growing_histogram(std::span<const float> values) { return growing(values); }
growing_histogram make_growing_histogram(std::span<const double> values) { return growing(values); }
equal_histogram make_equal_histogram(std::span<const float> values, std::size_t k) { return equal(values, k); }
equal_histogram make_equal_histogram(std::span<const double> values, std::size_t k) { return equal(values, k); }

void move_towards(std::span<float> averages, std::span<const float> values, float weight) noexcept { move_all(averages, values, weight); }
void move_towards(std::span<double> averages, std::span<const double> values, double weight) noexcept {
  move_all(averages, values, weight);
}

}  // namespace stepwell::kernel
