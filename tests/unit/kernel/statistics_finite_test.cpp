// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"

#include <stepwell/kernel/detail/statistics.hpp>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace sw = stepwell;
namespace kernel = stepwell::kernel;

namespace {

template<class T>
std::vector<T> bad_values() {
  using limits = std::numeric_limits<T>;
  return {limits::quiet_NaN(), -limits::quiet_NaN(), limits::infinity(), -limits::infinity()};
}

template<class T>
std::vector<T> odd_but_good_values() {
  using limits = std::numeric_limits<T>;
  return {T{0}, -T{0}, limits::max(), limits::lowest(), limits::min(), limits::denorm_min(), T{1}};
}

}  // namespace

TEMPLATE_TEST_CASE("one bad value is found at every place, length and alignment", "[kernel][finite]", float, double) {
  for (std::size_t size = 1; size <= 70; ++size) {
    for (std::size_t at = 0; at < size; ++at) {
      for (const TestType bad : bad_values<TestType>()) {
        std::vector<TestType> values(size + 3, TestType{1});
        values[at + at % 3] = bad;
        const std::span<const TestType> piece(values.data() + at % 3, size);
        const bool found = !kernel::all_finite(piece);
        if (!found || kernel::any_nan(piece) != std::isnan(bad)) { FAIL("size " << size << ", place " << at); }
      }
    }
  }
  SUCCEED();
}

TEMPLATE_TEST_CASE("zeros, denormals and the greatest values are finite", "[kernel][finite]", float, double) {
  for (std::size_t size = 0; size <= 70; ++size) {
    std::vector<TestType> values(size);
    const auto good = odd_but_good_values<TestType>();
    for (std::size_t i = 0; i < size; ++i) { values[i] = good[i % good.size()]; }
    if (!kernel::all_finite(std::span<const TestType>(values)) || kernel::any_nan(std::span<const TestType>(values))) {
      FAIL("size " << size);
    }
  }
  SUCCEED();
}

TEST_CASE("values just outside the span are not looked at", "[kernel][finite]") {
  std::vector<float> values(66, std::numeric_limits<float>::quiet_NaN());
  std::fill(values.begin() + 1, values.end() - 1, 1.0F);
  CHECK(kernel::all_finite(std::span<const float>(values).subspan(1, 64)));
  CHECK_FALSE(kernel::any_nan(std::span<const float>(values).subspan(1, 64)));
}

TEST_CASE("number_at returns elements of every real type, at any alignment, and rejects the others", "[kernel][finite]") {
  using enum sw::dtype;
  std::vector<std::byte> bytes(1 + 2 * sizeof(double), std::byte{0});
  const auto second = [&](sw::dtype type, const auto& value) {
    const auto elements = std::span(bytes).subspan(1);  // not aligned
    std::memcpy(elements.data() + sw::size_of(type), &value, sizeof value);
    return sw::kernel::number_at({type, elements}, 1);
  };
  CHECK(second(boolean, true) == 1);
  CHECK(second(int8, std::int8_t{-3}) == -3);
  CHECK(second(quint8, std::uint8_t{200}) == 200);
  CHECK(second(uint16, std::uint16_t{60'000}) == 60'000);
  CHECK(second(qint32, std::int32_t{-70'000}) == -70'000);
  CHECK(second(uint64, std::uint64_t{1} << 63) == 0x1p63);
  CHECK(second(int64, std::numeric_limits<std::int64_t>::min()) == -0x1p63);
  CHECK(second(half, std::uint16_t{0xc000}) == -2);
  CHECK(std::isnan(second(bfloat16, std::uint16_t{0x7fff})));
  CHECK(second(float8_e5m2, std::uint8_t{0x40}) == 2);
  CHECK(second(int4, std::uint8_t{0x0f}) == -1);
  CHECK(second(float32, 0.5f) == 0.5);
  CHECK(second(float64, 0.1) == 0.1);
  for (const auto type : {complex64, string, variant, resource, invalid}) {
    CHECK_THROWS_WITH(sw::kernel::number_at({type, bytes}, 0),
                      ContainsSubstring(std::string(sw::to_string(type)) + " are not real numbers"));
  }
}

TEST_CASE("to_doubles converts arrays of every real type as number_at does, at any alignment", "[kernel][finite]") {
  using enum sw::dtype;
  std::vector<std::byte> bytes(1 + 600 * sizeof(double));
  for (std::size_t i = 0; i < bytes.size(); ++i) { bytes[i] = static_cast<std::byte>(i * 2654435761U >> 7); }
  for (const auto type :
       {boolean, int8, qint8, uint8, int16, uint16, int32, uint32, int64, uint64, half, bfloat16, float8_e5m2, int4, float32, float64}) {
    for (const std::size_t count : {0U, 1U, 511U, 600U}) {
      const sw::elements_view values{type, std::span(bytes).subspan(1, count * sw::size_of(type))};
      std::vector<double> numbers(count);
      kernel::to_doubles(values, numbers);
      for (std::size_t i = 0; i < count; ++i) {
        const double expected = kernel::number_at(values, i);
        if (numbers[i] != expected && !(std::isnan(numbers[i]) && std::isnan(expected))) { FAIL(sw::to_string(type) << " " << i); }
      }
    }
  }
  std::vector<double> one(1);
  CHECK_THROWS_WITH(kernel::to_doubles({complex64, std::span(bytes).first(8)}, one), ContainsSubstring("are not real numbers"));
}

TEST_CASE("a bad half, bfloat16 or complex number is found at every place and length", "[kernel][finite]") {
  const auto check = [](sw::dtype type, auto good, auto infinite, auto nan) {
    for (std::size_t size = 1; size <= 70; ++size) {
      std::vector<decltype(good)> values(size, good);
      const sw::elements_view all{type, std::as_bytes(std::span(values))};
      if (!kernel::all_finite(all) || kernel::any_nan(all)) { FAIL("size " << size); }
      for (std::size_t at = 0; at < size; ++at) {
        values[at] = infinite;
        if (kernel::all_finite(all) || kernel::any_nan(all)) { FAIL("infinite: size " << size << ", place " << at); }
        values[at] = nan;
        if (kernel::all_finite(all) || !kernel::any_nan(all)) { FAIL("NaN: size " << size << ", place " << at); }
        values[at] = good;
      }
    }
  };
  using bits = std::uint16_t;
  check(sw::dtype::half, bits{0xfbff}, bits{0xfc00}, bits{0x7c01});
  check(sw::dtype::bfloat16, bits{0x7f7f}, bits{0x7f80}, bits{0xff81});
  const float inf = std::numeric_limits<float>::infinity();
  check(sw::dtype::complex64, std::complex<float>(1, 2), std::complex<float>(1, -inf), std::complex<float>(inf - inf, 1));
}
