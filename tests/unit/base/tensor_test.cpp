// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"

#include <stepwell/base/tensor.hpp>

#include <algorithm>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace sw = stepwell;

static_assert(sw::dtype_of<float> == sw::dtype::float32 && sw::dtype_of<double> == sw::dtype::float64);
static_assert(sw::dtype_of<const float> == sw::dtype::float32);
static_assert(sw::dtype_of<bool> == sw::dtype::boolean);
static_assert(sw::dtype_of<std::int8_t> == sw::dtype::int8 && sw::dtype_of<std::uint8_t> == sw::dtype::uint8);
static_assert(sw::dtype_of<std::int16_t> == sw::dtype::int16 && sw::dtype_of<std::uint16_t> == sw::dtype::uint16);
static_assert(sw::dtype_of<std::int32_t> == sw::dtype::int32 && sw::dtype_of<std::uint32_t> == sw::dtype::uint32);
static_assert(sw::dtype_of<long> == sw::dtype::int64 && sw::dtype_of<long long> == sw::dtype::int64);
static_assert(sw::dtype_of<unsigned long> == sw::dtype::uint64);
static_assert(sw::dtype_of<std::complex<float>> == sw::dtype::complex64);
static_assert(sw::dtype_of<std::complex<double>> == sw::dtype::complex128);
static_assert(sw::dtype_of<std::string> == sw::dtype::string);
static_assert(sw::dtype_of<long double> == sw::dtype::invalid && sw::dtype_of<void*> == sw::dtype::invalid);
static_assert(sw::tensor_element<float> && !sw::tensor_element<std::string> && !sw::tensor_element<std::byte>);
static_assert(!sw::tensor_element<char> && !sw::tensor_element<wchar_t>);  // text is not a list of numbers

TEST_CASE("element sizes are those of the C++ types", "[base][dtype]") {
  const auto same = []<class T>(T) { return sw::size_of(sw::dtype_of<T>) == sizeof(T); };
  CHECK((same(float{}) && same(double{}) && same(bool{}) && same(std::int8_t{}) && same(std::uint16_t{})));
  CHECK((same(std::int32_t{}) && same(std::uint64_t{}) && same(std::complex<float>{}) && same(std::complex<double>{})));
  CHECK(sw::size_of(sw::dtype::half) == 2);
  CHECK(sw::size_of(sw::dtype::bfloat16) == 2);
  CHECK(sw::size_of(sw::dtype::qint32) == 4);
  CHECK(sw::size_of(sw::dtype::float8_e4m3fn) == 1);
  CHECK(sw::size_of(sw::dtype::int2) == 1);  // one byte each, as TensorFlow stores them
  CHECK(sw::size_of(sw::dtype::string) == 0);
  CHECK(sw::size_of(sw::dtype{99}) == 0);
}

TEST_CASE("a dtype is named as TensorFlow names it, and unknown numbers are invalid", "[base][dtype]") {
  CHECK(sw::to_string(sw::dtype::float32) == "float32");
  CHECK(sw::to_string(sw::dtype::string) == "string");
  CHECK(sw::to_string(sw::dtype::half) == "float16");
  CHECK(sw::to_string(sw::dtype::uint64) == "uint64");
  CHECK(sw::to_string(sw::dtype{24}) == "float8_e5m2");
  CHECK(sw::to_string(sw::dtype{29}) == "int4");
  CHECK(sw::to_string(sw::dtype{33}) == "float4_e2m1fn");
  CHECK(sw::to_string(sw::dtype{34}) == "invalid");
  CHECK(sw::to_string(sw::dtype{-1}) == "invalid");
}

TEST_CASE("a shape counts its elements and reads as a list", "[base][tensor]") {
  CHECK(sw::element_count({}) == 1);
  CHECK(sw::element_count({2, 3, 4}) == 24);
  CHECK(sw::element_count({2, 0, 4}) == 0);
  CHECK(sw::to_string(sw::tensor_shape{}) == "[]");
  CHECK(sw::to_string(sw::tensor_shape{5}) == "[5]");
  CHECK(sw::to_string(sw::tensor_shape{2, 3}) == "[2,3]");
}

TEST_CASE("a new tensor holds zeros, or empty strings", "[base][tensor]") {
  const sw::tensor numbers(sw::dtype::float32, {2, 3});
  CHECK(numbers.bytes().size() == 24);
  CHECK(std::ranges::all_of(numbers.as<float>(), [](float value) { return value == 0; }));
  CHECK(numbers.strings().empty());
  sw::tensor texts(sw::dtype::string, {2});
  CHECK(texts.bytes().empty());
  REQUIRE(texts.strings().size() == 2);
  texts.strings()[1] = "b";
  CHECK(texts.strings()[0].empty());
}

TEST_CASE("a tensor's elements are written and read as their type", "[base][tensor]") {
  sw::tensor made(sw::dtype::int64, {3});
  std::ranges::copy(std::vector<std::int64_t>{1, -2, 3}, made.as<std::int64_t>().begin());
  const sw::tensor copy = made;
  made.as<std::int64_t>()[0] = 9;
  CHECK(copy.as<std::int64_t>()[0] == 1);
  CHECK(copy.as<std::int64_t>()[1] == -2);
  const auto view = copy.view();
  CHECK(view.dtype == sw::dtype::int64);
  CHECK(view.shape == sw::tensor_shape{3});
  CHECK(view.bytes.data() == copy.bytes().data());
}

TEST_CASE("a scalar has rank 0 and one element", "[base][tensor]") {
  const auto made = sw::tensor::scalar(2.5);
  CHECK(made.dtype() == sw::dtype::float64);
  CHECK(made.shape().empty());
  REQUIRE(made.as<double>().size() == 1);
  CHECK(made.as<double>()[0] == 2.5);
  CHECK(sw::tensor().dtype() == sw::dtype::invalid);
}
