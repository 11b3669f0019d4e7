// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"
#include "support/log_capture.hpp"

#include <stepwell/base/tensor.hpp>
#include <stepwell/kernel/detail/crc32c.hpp>
#include <stepwell/kernel/detail/simd.hpp>
#include <stepwell/kernel/detail/statistics.hpp>

#include <sys/utsname.h>
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

namespace sw = stepwell;
namespace kernel = stepwell::kernel;

namespace {

template<class T>
using bits_of = kernel::growing_entry<T>;

template<class T>
const kernel::simd_functions<T>& functions_of(const kernel::simd_kernels& set) {
  if constexpr (std::is_same_v<T, float>) {
    return set.floats;
  } else {
    return set.doubles;
  }
}

/// The kinds of values that a test array has.
enum class contents { usual, any_finite, any_bits, rarely_bad };

template<class T>
std::vector<T> make_values(std::size_t size, contents kind, unsigned seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  std::vector<T> values(size);
  for (auto& value : values) {
    value = static_cast<T>(normal(random));
    if (kind == contents::any_finite || kind == contents::any_bits) {
      do { value = std::bit_cast<T>(static_cast<bits_of<T>>(random())); } while (kind == contents::any_finite && !std::isfinite(value));
    }
    if (kind == contents::any_finite && random() % 8 == 0) {
      using limits = std::numeric_limits<T>;
      const std::array<T, 7> odd = {T{0},         -T{0}, limits::max(), limits::lowest(), limits::denorm_min(), -limits::denorm_min(),
                                    limits::min()};
      value = odd[random() % odd.size()];
    }
    if (kind == contents::rarely_bad && random() % 64 == 0) {
      value = random() % 2 == 0 ? std::numeric_limits<T>::quiet_NaN() : -std::numeric_limits<T>::infinity();
    }
  }
  return values;
}

/// Calls `check(values)` for spans of all lengths from 0 to 100 and some greater ones, with all alignments to an element, and all contents.
template<class T, class Check>
void for_all_arrays(Check check) {
  for (const auto kind : {contents::usual, contents::any_finite, contents::any_bits, contents::rarely_bad}) {
    const auto values = make_values<T>(5000, kind, 17);
    const auto at_every_alignment = [&](std::size_t size) {
      for (std::size_t offset = 0; offset < 64 / sizeof(T); ++offset) { check(std::span<const T>(values).subspan(offset, size)); }
    };
    for (std::size_t size = 0; size <= 100; ++size) { at_every_alignment(size); }
    for (const std::size_t size : {511U, 512U, 513U, 1024U, 4900U}) { at_every_alignment(size); }
  }
}

/// Returns the bits of the result of all kernels for this array.
template<class T>
std::vector<std::uint64_t> all_results(const kernel::simd_kernels& set, std::span<const T> values) {
  const auto& functions = functions_of<T>(set);
  std::vector<std::uint64_t> all;
  const auto add = [&](auto result) { all.push_back(std::bit_cast<bits_of<decltype(result)>>(result)); };
  all.push_back(functions.all_finite(values.data(), values.size()) ? 1 : 0);
  all.push_back(functions.any_nan(values.data(), values.size()) ? 1 : 0);
  const auto moments = functions.moments(values.data(), values.size());
  for (const double one : {moments.min, moments.max, moments.sum, moments.sum_squares}) { add(one); }
  all.push_back(moments.count);
  add(functions.sum(values.data(), values.size()));
  std::vector<double> equal(values.size());
  functions.equal_buckets(values.data(), values.size(), {moments.min / 2, std::max(moments.max / 2 - moments.min / 2, 1e-300) / 30, 29},
                          equal.data());
  for (const double one : equal) { add(one); }
  std::vector<bits_of<T>> growing(values.size());
  functions.growing_buckets(values.data(), values.size(), kernel::growing_entries<T>().data(), growing.data());
  all.insert(all.end(), growing.begin(), growing.end());
  std::vector<T> averages(values.rbegin(), values.rend());
  functions.move_towards(averages.data(), values.data(), values.size(), T(0.1));
  for (const T one : averages) { add(one); }
  return all;
}

template<class T>
std::uint64_t lane_sum(std::span<const T> values, double (*term)(double)) {
  std::array<double, 16> lanes{};
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto value = static_cast<double>(values[i]);
    lanes[i % 16] += std::isfinite(value) ? term(value) : 0;
  }
  for (const std::size_t half : {8U, 4U, 2U, 1U}) {
    for (std::size_t i = 0; i < half; ++i) { lanes[i] += lanes[i + half]; }
  }
  return std::bit_cast<std::uint64_t>(lanes[0]);
}

}  // namespace

TEMPLATE_TEST_CASE("every set of instructions gives the same bits", "[kernel][simd]", float, double) {
  const auto& baseline = *kernel::available_simd().back();
  for (const auto* const set : kernel::available_simd()) {
    INFO(set->name);
    for_all_arrays<TestType>([&](std::span<const TestType> values) {
      if (all_results(*set, values) != all_results(baseline, values)) { FAIL("size " << values.size()); }
    });
    SUCCEED();
  }
}

TEST_CASE("every architecture gives the same bits", "[kernel][simd]") {
  const auto checksum = [](auto zero, const kernel::simd_kernels& set) {
    using number = decltype(zero);
    std::mt19937_64 random(29);
    std::vector<number> values(1000);
    std::uint32_t sum = 0;
    for (const bool all_bits : {false, true}) {
      for (auto& value : values) {
        const auto bits = static_cast<bits_of<number>>(random());
        // Without `all_bits`, numbers from -2 to 2, which come from integers: distributions of the standard library may differ.
        value = all_bits ? std::bit_cast<number>(bits) : static_cast<number>(static_cast<std::int32_t>(random())) / (1 << 30);
      }
      for (const std::size_t size : {1U, 7U, 31U, 100U, 1000U}) {
        const auto results = all_results(set, std::span<const number>(values).first(size));
        sum = kernel::crc32c(std::as_bytes(std::span(results)), sum);
      }
    }
    return sum;
  };
  for (const auto* const set : kernel::available_simd()) {
    INFO(set->name);
    CHECK(checksum(0.0F, *set) == 0x64bcde3e);
    CHECK(checksum(0.0, *set) == 0x3a440cd7);
  }
}

TEST_CASE("on arm64 the kernels use NEON", "[kernel][simd]") {
  utsname machine{};
  REQUIRE(::uname(&machine) == 0);
  const bool is_arm64 = machine.machine == std::string_view("aarch64");
  CHECK((kernel::available_simd().front()->name == std::string_view("neon")) == is_arm64);
}

TEMPLATE_TEST_CASE("sums are those of sixteen lanes, which are added in one order", "[kernel][simd]", float, double) {
  for (const auto* const set : kernel::available_simd()) {
    INFO(set->name);
    for_all_arrays<TestType>([&](std::span<const TestType> values) {
      const auto found = functions_of<TestType>(*set).moments(values.data(), values.size());
      const auto bits = [](double value) { return std::bit_cast<std::uint64_t>(value); };
      const bool is_same = bits(found.sum) == lane_sum<TestType>(values, [](double value) { return value; }) &&
                           bits(found.sum_squares) == lane_sum<TestType>(values, [](double value) { return value * value; });
      if (!is_same && std::isfinite(found.sum) && std::isfinite(found.sum_squares)) { FAIL("size " << values.size()); }
    });
    SUCCEED();
  }
}

TEMPLATE_TEST_CASE("the bucket of a TF1 histogram is that of a search in the limits", "[kernel][simd]", float, double) {
  const auto limits = kernel::histogram_limits();
  std::vector<TestType> values;
  for (const double limit : limits.subspan(1, limits.size() - 2)) {
    auto value = static_cast<TestType>(limit);
    for (int i = 0; i < 3; ++i) { value = std::nextafter(value, std::numeric_limits<TestType>::lowest()); }
    for (int i = 0; i < 7; ++i) {
      values.push_back(value);
      value = std::nextafter(value, std::numeric_limits<TestType>::max());
    }
  }
  for (const auto kind : {contents::usual, contents::any_finite}) {
    for (const auto value : make_values<TestType>(5000, kind, 5)) { values.push_back(value); }
  }
  std::mt19937_64 random(3);
  for (int i = 0; i < 5000; ++i) {
    values.push_back(
        static_cast<TestType>(std::ldexp(static_cast<double>(random() % 4096) - 2047.5, static_cast<int>(random() % 120) - 60)));
  }
  for (const auto kind : {contents::any_bits, contents::rarely_bad}) {
    for (const auto value : make_values<TestType>(1000, kind, 5)) { values.push_back(value); }
  }
  std::ranges::shuffle(values, random);
  for (const auto* const set : kernel::available_simd()) {
    std::vector<bits_of<TestType>> buckets(values.size());
    functions_of<TestType>(*set).growing_buckets(values.data(), values.size(), kernel::growing_entries<TestType>().data(), buckets.data());
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto found = std::ranges::upper_bound(limits, static_cast<double>(values[i])) - limits.begin();
      const auto expected = std::isfinite(values[i]) ? std::min<std::uint64_t>(static_cast<std::uint64_t>(found), 1550) : 1551;
      if (buckets[i] != expected) { FAIL(set->name << ", value " << values[i]); }
    }
    SUCCEED();
  }
}

TEMPLATE_TEST_CASE("values are within bounds if each is, and NaN never is", "[kernel][simd]", float, double) {
  const auto bounds = std::array{TestType(-0.5), TestType(0), TestType(0.25), TestType(3), std::numeric_limits<TestType>::max()};
  for (const auto* const set : kernel::available_simd()) {
    for_all_arrays<TestType>([&](std::span<const TestType> values) {
      for (std::size_t i = 0; i + 1 < bounds.size(); ++i) {
        const auto is_within = [&](TestType value) { return value >= bounds[i] && value <= bounds[i + 1]; };
        std::vector<TestType> kept(values.begin(), values.end());
        for (auto& value : kept) { value = is_within(value) ? value : bounds[i + 1]; }
        const auto& within = functions_of<TestType>(*set).all_within;
        const auto all = within(kept.data(), kept.size(), bounds[i], bounds[i + 1]);
        const auto same = within(values.data(), values.size(), bounds[i], bounds[i + 1]) == std::ranges::all_of(values, is_within);
        if (!all || !same) { FAIL(set->name << ", size " << values.size() << ", bounds from " << bounds[i]); }
      }
    });
    SUCCEED();
  }
}

TEST_CASE("a test of 16-bit numbers finds one bad value at every place and length", "[kernel][simd]") {
  for (const auto* const set : kernel::available_simd()) {
    INFO(set->name);
    for (std::size_t size = 0; size <= 100; ++size) {
      std::vector<std::uint16_t> bits(size, 0xfbff);
      CHECK(set->magnitudes_at_most(bits.data(), size, 0x7bff));
      for (std::size_t at = 0; at < size; ++at) {
        bits[at] = 0xfc00;
        if (set->magnitudes_at_most(bits.data(), size, 0x7bff) || !set->magnitudes_at_most(bits.data(), size, 0x7c00)) {
          FAIL("size " << size << ", place " << at);
        }
        bits[at] = 0x8000;
      }
    }
  }
}

TEST_CASE("all 16-bit numbers are converted exactly", "[kernel][simd]") {
  std::vector<std::uint16_t> bits(1 << 16);
  for (std::size_t i = 0; i < bits.size(); ++i) { bits[i] = static_cast<std::uint16_t>(i); }
  const auto is_same = [](float one, float other) {
    return std::isnan(one) ? std::isnan(other) : std::bit_cast<std::uint32_t>(one) == std::bit_cast<std::uint32_t>(other);
  };
  for (const auto* const set : kernel::available_simd()) {
    INFO(set->name);
    std::vector<float> halves(bits.size());
    std::vector<float> bfloats(bits.size());
    set->half_to_float(bits.data(), bits.size(), halves.data());
    set->bfloat16_to_float(bits.data(), bits.size(), bfloats.data());
    for (std::size_t i = 0; i < bits.size(); ++i) {
      if (!is_same(halves[i], sw::detail::half_number(bits[i])) || !is_same(bfloats[i], sw::detail::bfloat16_number(bits[i]))) { FAIL(i); }
    }
    SUCCEED();
  }
}

TEST_CASE("the place of the greatest value is that of a plain loop", "[kernel][simd]") {
  for (const auto* const set : kernel::available_simd()) {
    INFO(set->name);
    for_all_arrays<float>([&](std::span<const float> values) {
      if (values.empty()) { return; }
      const auto found = set->argmax(values.data(), values.size());
      const bool has_nan = std::ranges::any_of(values, [](float value) { return std::isnan(value); });
      const auto expected = static_cast<std::size_t>(std::ranges::max_element(values) - values.begin());
      if (found.has_nan != has_nan || (!has_nan && found.index != expected)) { FAIL("size " << values.size()); }
      const auto greater = std::ranges::count_if(values, [&](float value) { return value > values[0]; });
      if (set->count_greater(values.data(), values.size(), values[0]) != static_cast<std::size_t>(greater)) {
        FAIL("size " << values.size());
      }
    });
    const std::vector<float> zeros = {-1, -0.0F, 0, -0.0F, 0, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1};
    CHECK(set->argmax(zeros.data(), zeros.size()).index == 1);
  }
}

TEST_CASE("equal integers are counted", "[kernel][simd]") {
  std::mt19937_64 random(1);
  std::vector<std::int64_t> some(120);
  std::vector<std::int64_t> others(120);
  for (auto& one : some) { one = static_cast<std::int64_t>(random() % 3) << 32; }
  for (auto& one : others) { one = static_cast<std::int64_t>(random() % 3) << 32; }
  for (const auto* const set : kernel::available_simd()) {
    for (std::size_t size = 0; size <= 100; ++size) {
      std::size_t expected = 0;
      for (std::size_t i = 0; i < size; ++i) { expected += some[size % 7 + i] == others[size % 5 + i] ? 1 : 0; }
      CHECK(set->count_equal(some.data() + size % 7, others.data() + size % 5, size) == expected);
    }
  }
}

TEST_CASE("STEPWELL_SIMD selects an available set, and an unknown name is logged and has no effect", "[kernel][simd]") {
  for (const auto* const set : kernel::available_simd()) { CHECK(&kernel::select_simd(set->name) == set); }
  CHECK(&kernel::select_simd(nullptr) == kernel::available_simd().front());
  const sw::test::log_capture log;
  CHECK(&kernel::select_simd("avx3") == kernel::available_simd().front());
  CHECK(log.contains(sw::log_level::warning, "STEPWELL_SIMD=avx3 has no effect"));
}
