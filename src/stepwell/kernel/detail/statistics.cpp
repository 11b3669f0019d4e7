// SPDX-License-Identifier: Apache-2.0
#include "stepwell/kernel/detail/statistics.hpp"

#include "stepwell/base/detail/default_float_mode.hpp"
#include "stepwell/base/detail/visit_dtype.hpp"
#include "stepwell/base/error.hpp"
#include "stepwell/kernel/detail/simd.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>

namespace stepwell::kernel {
namespace {

constexpr double greatest = std::numeric_limits<double>::max();

// The kernels for arrays of T.
template<class T>
const simd_functions<T>& kernels_of() noexcept {
  if constexpr (std::is_same_v<T, float>) {
    return simd().floats;
  } else {
    return simd().doubles;
  }
}

// Returns true if all elements pass: `whole` tests spans of floats and doubles, `one` tests a float. A 16-bit number passes if its bits
// without the sign are at most those of infinity minus `below_infinity`. Complex numbers are pairs of numbers.
template<class Whole, class One>
bool all_elements(const elements_view& values, Whole whole, One one, std::uint16_t below_infinity) {
  const auto as = [&]<class Element>(std::type_identity<Element>) {
    return std::span(reinterpret_cast<const Element*>(values.bytes.data()), values.bytes.size() / sizeof(Element));
  };
  const auto short_numbers = [&](std::uint16_t infinity) {
    const auto bits = as(std::type_identity<std::uint16_t>{});
    return simd().magnitudes_at_most(bits.data(), bits.size(), static_cast<std::uint16_t>(infinity - below_infinity));
  };
  const auto type = values.dtype;
  if (type == dtype::float32 || type == dtype::complex64) { return whole(as(std::type_identity<float>{})); }
  if (type == dtype::float64 || type == dtype::complex128) { return whole(as(std::type_identity<double>{})); }
  if (type == dtype::half) { return short_numbers(0x7c00); }
  if (type == dtype::bfloat16) { return short_numbers(0x7f80); }
  if (stepwell::detail::is_narrow_number(type)) {
    return std::ranges::all_of(as(std::type_identity<std::uint8_t>{}), one,
                               [type](std::uint8_t bits) { return stepwell::detail::narrow_number(type, bits); });
  }
  if (size_of(type) == 0) {
    throw invalid_argument_error("elements of " + std::string(to_string(type)) + " are not numbers; they cannot be tested for NaN");
  }
  return true;  // integers and booleans
}

template<class T>
moments_of_values moments_of(std::span<const T> values) noexcept {
  const stepwell::detail::default_float_mode mode;
  const auto found = kernels_of<T>().moments(values.data(), values.size());
  moments_of_values all;
  all.nonfinite = values.size() - found.count;
  if (found.count > 0) {
    all.min = found.min;
    all.max = found.max;
    all.sum = found.sum;
    all.sum_squares = found.sum_squares;
    all.count = found.count;
  }
  return all;
}

// Calls `see(std::type_identity<Element>)`. @errors `invalid_argument_error` if the elements are not real numbers.
template<class See>
void with_real_type(dtype type, See see) {
  bool is_real = false;
  stepwell::detail::visit_dtype(type, [&]<class Element>(std::type_identity<Element> element) {
    if constexpr (requires(Element value) { stepwell::detail::to_double(value); }) {
      is_real = true;
      see(element);
    }
  });
  if (!is_real) {
    throw invalid_argument_error("elements of " + std::string(to_string(type)) + " are not real numbers; convert them before");
  }
}

// ---- the histogram of TF1

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

constexpr std::size_t last_bucket = limit_count - 1;

// Returns the number of the first limit greater than the value. No limit exceeds the greatest double, so that value belongs to the last bucket.
std::size_t growing_bucket(double value) {
  const auto limits = histogram_limits();
  return std::min(static_cast<std::size_t>(std::ranges::upper_bound(limits, value) - limits.begin()), last_bucket);
}

template<class T>
std::vector<growing_entry<T>> make_cells() {
  using entry = growing_entry<T>;
  constexpr auto low_bits = (entry{1} << growing_shift<T>)-1;
  const auto limits = histogram_limits();
  std::vector<entry> cells(2 * growing_cells);
  for (std::size_t i = 0; i < growing_cells; ++i) {
    const auto edge = [&](std::size_t sixteenths) {
      return std::ldexp(static_cast<T>(16 + sixteenths), growing_first_exponent + static_cast<int>(i / 16) - 4);
    };
    const T start = edge(i % 16);
    const double end = static_cast<double>(edge(i % 16 + 1));
    const auto distance = [&](T magnitude) { return std::bit_cast<entry>(magnitude) - std::bit_cast<entry>(start); };
    // A positive value is in the bucket of the start, or in the next one if it is not below the limit between them.
    const auto bucket = growing_bucket(static_cast<double>(start));
    entry carry = 0;
    if (const double limit = limits[bucket]; limit < end) {
      auto at_limit = static_cast<T>(limit);
      if (static_cast<double>(at_limit) < limit) { at_limit = std::nextafter(at_limit, std::numeric_limits<T>::max()); }
      if (static_cast<double>(at_limit) < end) { carry = low_bits + 1 - distance(at_limit); }
    }
    cells[i] = (static_cast<entry>(bucket) << growing_shift<T>)+carry;
    // A negative value is in the bucket of the start, or in the one before if it is below the limit between them.
    const auto below = growing_bucket(-static_cast<double>(start));
    entry borrow = low_bits;
    if (const double limit = -limits[below - 1]; limit < end) {
      auto at_limit = static_cast<T>(limit);
      if (static_cast<double>(at_limit) > limit) { at_limit = std::nextafter(at_limit, T{0}); }
      borrow = distance(at_limit);
    }
    cells[growing_cells + i] = (static_cast<entry>(below) << growing_shift<T>)+borrow;
  }
  return cells;
}

// ---- counting

// Consecutive values have different counters, so that an increment does not wait for the one before.
constexpr std::size_t counters_of_bucket = 4;

std::uint64_t bucket_number(std::uint32_t bucket) noexcept { return bucket; }
std::uint64_t bucket_number(std::uint64_t bucket) noexcept { return bucket; }
std::uint64_t bucket_number(double bucket) noexcept { return static_cast<std::uint32_t>(std::bit_cast<std::uint64_t>(bucket)); }

// Adds the values to the counters of their buckets. `find(values, size, buckets)` writes the bucket of each value.
template<class Bucket, class T, class Find>
void count_values(std::span<const T> values, Find find, std::span<std::uint64_t> counters) {
  std::array<Bucket, 512> buckets;  // NOLINT(cppcoreguidelines-pro-type-member-init): written by `find`
  for (; !values.empty(); values = values.subspan(std::min(values.size(), buckets.size()))) {
    const auto size = std::min(values.size(), buckets.size());
    find(values.data(), size, buckets.data());
    const auto count = [&](std::size_t i, std::size_t way) { ++counters[counters_of_bucket * bucket_number(buckets[i]) + way]; };
    std::size_t i = 0;
    for (; i + counters_of_bucket <= size; i += counters_of_bucket) {
      for (std::size_t way = 0; way < counters_of_bucket; ++way) { count(i + way, way); }
    }
    for (; i < size; ++i) { count(i, 0); }
  }
}

double count_in(std::span<const std::uint64_t> counters, std::size_t bucket) {
  const auto own = counters.subspan(counters_of_bucket * bucket, counters_of_bucket);
  return static_cast<double>(own[0] + own[1] + own[2] + own[3]);
}

using growing_counters = std::array<std::uint64_t, counters_of_bucket*(limit_count + 1)>;

template<class T>
void count_growing(std::span<const T> values, growing_counters& counters) {
  count_values<growing_entry<T>>(
      values,
      [cells = growing_entries<T>().data()](const T* some, std::size_t size, growing_entry<T>* buckets) {
        kernels_of<T>().growing_buckets(some, size, cells, buckets);
      },
      counters);
}

// Makes the histogram of the values with these moments. The counters from the bucket of the least value to that of the greatest are valid.
growing_histogram growing_of(const moments_of_values& stats, std::span<const std::uint64_t> counters) {
  const auto limits = histogram_limits();
  growing_histogram made{.stats = stats, .limits = {}, .counts = {}};
  if (stats.count == 0) {
    made.limits = {limits[last_bucket]};
    made.counts = {0};
    return made;
  }
  const auto first = growing_bucket(stats.min);
  const auto last = growing_bucket(stats.max);
  // Of consecutive empty buckets, only the last one is kept. No branch depends on a count, because counts of few values cannot be predicted.
  made.limits.resize(last - first + 3);
  made.counts.resize(last - first + 3);
  std::size_t size = 0;
  const auto add = [&](std::size_t bucket, double count, bool is_kept) {
    made.limits[size] = limits[bucket];
    made.counts[size] = count;
    size += is_kept ? 1 : 0;
  };
  if (first > 0) { add(first - 1, 0, true); }
  double next = count_in(counters, first);
  for (auto i = first; i <= last; ++i) {
    const double count = next;
    next = i < last ? count_in(counters, i + 1) : 0;
    add(i, count, (count != 0) | (next != 0));
  }
  if (last < last_bucket) { add(last_bucket, 0, true); }
  made.limits.resize(size);
  made.counts.resize(size);
  return made;
}

template<class T>
growing_histogram growing(std::span<const T> values) {
  const stepwell::detail::default_float_mode mode;
  const auto stats = moments(values);
  growing_counters counters;  // NOLINT(cppcoreguidelines-pro-type-member-init): only the counters that are used are set to 0
  if (stats.count > 0) {
    const auto first = growing_bucket(stats.min);
    const auto last = growing_bucket(stats.max);
    std::ranges::fill(std::span(counters).subspan(counters_of_bucket * first, counters_of_bucket * (last - first + 1)), 0);
    std::ranges::fill(std::span(counters).last(counters_of_bucket), 0);  // the bucket of values that are not finite
    count_growing(values, counters);
  }
  return growing_of(stats, counters);
}

// Makes the histogram of the values with these moments. `count(places, counters)` counts the values in the buckets at these places.
template<class Count>
equal_histogram equal_of(const moments_of_values& stats, std::size_t k, Count count) {
  assert(k > 0);
  equal_histogram made{stats, std::vector<equal_bucket>(k)};
  if (made.stats.count == 0) { return made; }
  const double min = made.stats.min;
  const double max = made.stats.max;
  // Computes with half of each value, so that a range wider than the greatest double does not overflow.
  const double half_width = (max / 2 - min / 2) / static_cast<double>(k);
  const auto edge = [&](std::size_t i) { return i == k ? max : min + 2 * (static_cast<double>(i) * half_width); };
  for (std::size_t i = 0; i < k; ++i) { made.buckets[i] = {edge(i), edge(i + 1), 0}; }
  if (half_width == 0) {
    made.buckets.back().count = static_cast<double>(made.stats.count);
    return made;
  }
  std::vector<std::uint64_t> counters(counters_of_bucket * (k + 1));  // the last bucket is that of values that are not finite
  count(equal_places{min / 2, half_width, static_cast<double>(k - 1)}, std::span(counters));
  for (std::size_t i = 0; i < k; ++i) { made.buckets[i].count = count_in(counters, i); }
  return made;
}

template<class T>
void count_equal_buckets(std::span<const T> values, const equal_places& places, std::span<std::uint64_t> counters) {
  count_values<double>(
      values, [&](const T* some, std::size_t size, double* buckets) { kernels_of<T>().equal_buckets(some, size, places, buckets); },
      counters);
}

template<class T>
equal_histogram equal(std::span<const T> values, std::size_t k) {
  const stepwell::detail::default_float_mode mode;
  return equal_of(moments(values), k, [&](const auto& places, auto counters) { count_equal_buckets(values, places, counters); });
}

// ---- lazy tensors

// Calls `see` with spans of floats or doubles that are all elements. Converts other elements to doubles.
template<class See>
void for_each_span(const lazy_view& values, See see) {
  stepwell::detail::for_each_block(values, [&](const elements_view& block) {
    const auto see_all = [&](auto elements) {
      see(elements);
      return true;
    };
    if (stepwell::detail::see_floats(block, see_all, false)) { return true; }
    std::array<double, 512> numbers;  // NOLINT(cppcoreguidelines-pro-type-member-init): written by `to_doubles`
    const auto size = size_of(block.dtype);
    for (auto rest = block.bytes; !rest.empty(); rest = rest.subspan(std::min(rest.size(), numbers.size() * size))) {
      const auto some = rest.first(std::min(rest.size(), numbers.size() * size));
      const auto converted = std::span(numbers).first(some.size() / size);
      to_doubles({block.dtype, some}, converted);
      see(std::span<const double>(converted));
    }
    return true;
  });
}

// Returns true if all finite values are within the bounds. Computes the moments only if there is a value that the fast test refuses.
template<class T>
bool is_within(std::span<const T> values, const moments_of_values& bounds) noexcept {
  if (kernels_of<T>().all_within(values.data(), values.size(), static_cast<T>(bounds.min), static_cast<T>(bounds.max))) { return true; }
  const auto found = moments(values);
  return found.count == 0 || (found.min >= bounds.min && found.max <= bounds.max);
}

void add(moments_of_values& all, const moments_of_values& more) noexcept {
  all.min = std::min(all.min, more.min);
  all.max = std::max(all.max, more.max);
  all.sum += more.sum;
  all.sum_squares += more.sum_squares;
  all.count += more.count;
  all.nonfinite += more.nonfinite;
}

template<class T>
void move_all(std::span<T> averages, std::span<const T> values, T weight) noexcept {
  assert(averages.size() == values.size());
  kernels_of<T>().move_towards(averages.data(), values.data(), values.size(), weight);
}

}  // namespace

bool all_finite(std::span<const float> values) noexcept { return simd().floats.all_finite(values.data(), values.size()); }
bool all_finite(std::span<const double> values) noexcept { return simd().doubles.all_finite(values.data(), values.size()); }
bool all_finite(const elements_view& values) {
  return all_elements(values, [](auto elements) { return all_finite(elements); }, [](float value) { return std::isfinite(value); }, 1);
}
bool any_nan(const elements_view& values) {
  return !all_elements(values, [](auto elements) { return !any_nan(elements); }, [](float value) { return !std::isnan(value); }, 0);
}
double number_at(const elements_view& values, std::size_t index) {
  double number = 0;
  with_real_type(values.dtype, [&]<class Element>(std::type_identity<Element>) {
    number = stepwell::detail::to_double(stepwell::detail::element_at<Element>(values.bytes, index));
  });
  return number;
}

void to_doubles(const elements_view& values, std::span<double> numbers) {
  const stepwell::detail::default_float_mode mode;
  if (values.dtype != dtype::half && values.dtype != dtype::bfloat16) {
    return with_real_type(values.dtype, [&]<class Element>(std::type_identity<Element>) {
      for (std::size_t i = 0; i < numbers.size(); ++i) {
        numbers[i] = stepwell::detail::to_double(stepwell::detail::element_at<Element>(values.bytes, i));
      }
    });
  }
  const auto to_float = values.dtype == dtype::half ? simd().half_to_float : simd().bfloat16_to_float;
  std::array<std::uint16_t, 512> bits;  // NOLINT(cppcoreguidelines-pro-type-member-init): written by `memcpy`
  std::array<float, 512> floats;        // NOLINT(cppcoreguidelines-pro-type-member-init): written by `to_float`
  for (std::size_t begin = 0; begin < numbers.size(); begin += bits.size()) {
    const auto size = std::min(bits.size(), numbers.size() - begin);
    std::memcpy(bits.data(), values.bytes.data() + begin * sizeof bits[0], size * sizeof bits[0]);
    to_float(bits.data(), size, floats.data());
    std::ranges::copy(std::span(floats).first(size), numbers.subspan(begin).begin());
  }
}

bool any_nan(std::span<const float> values) noexcept { return simd().floats.any_nan(values.data(), values.size()); }
bool any_nan(std::span<const double> values) noexcept { return simd().doubles.any_nan(values.data(), values.size()); }

moments_of_values moments(std::span<const float> values) noexcept { return moments_of(values); }
moments_of_values moments(std::span<const double> values) noexcept { return moments_of(values); }

std::span<const double> histogram_limits() {
  static const auto limits = [] {
    const stepwell::detail::default_float_mode mode;
    return make_limits();
  }();
  return limits;
}

template<class T>
std::span<const growing_entry<T>> growing_entries() {
  static const auto entries = [] {
    const stepwell::detail::default_float_mode mode;
    return make_cells<T>();
  }();
  return entries;
}
template std::span<const growing_entry<float>> growing_entries<float>();
template std::span<const growing_entry<double>> growing_entries<double>();

growing_histogram make_growing_histogram(std::span<const float> values) { return growing(values); }
growing_histogram make_growing_histogram(std::span<const double> values) { return growing(values); }
equal_histogram make_equal_histogram(std::span<const float> values, std::size_t k) { return equal(values, k); }
equal_histogram make_equal_histogram(std::span<const double> values, std::size_t k) { return equal(values, k); }

growing_histogram make_growing_histogram(const lazy_view& values) {
  const stepwell::detail::default_float_mode mode;
  moments_of_values stats;
  growing_counters counters{};
  for_each_span(values, [&](auto some) {
    add(stats, moments(some));
    count_growing(some, counters);
  });
  return growing_of(stats, counters);
}

equal_histogram make_equal_histogram(const lazy_view& values, std::size_t k) {
  const stepwell::detail::default_float_mode mode;
  moments_of_values stats;
  for_each_span(values, [&](auto some) { add(stats, moments(some)); });
  return equal_of(stats, k, [&](const equal_places& places, std::span<std::uint64_t> counters) {
    for_each_span(values, [&](auto some) {
      if (!is_within(some, stats)) {
        throw invalid_argument_error(
            "the values of an expression changed while they were counted for a histogram; if it draws random numbers, store its value first");
      }
      count_equal_buckets(some, places, counters);
    });
  });
}

void move_towards(std::span<float> averages, std::span<const float> values, float weight) noexcept { move_all(averages, values, weight); }
void move_towards(std::span<double> averages, std::span<const double> values, double weight) noexcept {
  move_all(averages, values, weight);
}

}  // namespace stepwell::kernel
