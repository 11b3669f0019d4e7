// SPDX-License-Identifier: Apache-2.0
//
// Compares with a table from ml_dtypes (tests/golden/checkpoint/make_tensorflow.py): the value of every bit pattern of
// every narrow type.
#include "support/catch.hpp"
#include "support/narrow_table.hpp"

#include <stepwell/base/detail/visit_dtype.hpp>
#include <stepwell/base/tensor.hpp>

#include <array>
#include <cmath>
#include <cstddef>

namespace sw = stepwell;

TEST_CASE("every bit pattern of a float8, float4, int4, int2 type has the value that ml_dtypes gives it", "[base][dtype][golden]") {
  const auto table = sw::test::narrow_table();
  REQUIRE(table.size() == 10);
  for (const auto& row : table) {
    INFO(row.name);
    REQUIRE(sw::detail::is_narrow_number(row.type));
    REQUIRE(row.values.size() == (row.name.starts_with("float8") ? 256u : row.name.ends_with("int2") ? 4u : 16u));
    for (std::size_t bits = 0; bits < row.values.size(); ++bits) {
      const float want = row.values[bits];
      const float have = sw::detail::narrow_number(row.type, static_cast<std::uint8_t>(bits));
      INFO(bits << ": " << have << ", not " << want);
      CHECK((std::isnan(want) ? std::isnan(have) : have == want && std::signbit(have) == std::signbit(want)));
    }
  }
}

TEST_CASE("only the low bits of a type narrower than a byte count", "[base][dtype]") {
  CHECK(sw::detail::narrow_number(sw::dtype::int4, 0xf8) == -8);
  CHECK(sw::detail::narrow_number(sw::dtype::uint4, 0xf8) == 8);
  CHECK(sw::detail::narrow_number(sw::dtype::int2, 0xfe) == -2);
  CHECK(sw::detail::narrow_number(sw::dtype::uint2, 0xfe) == 2);
  CHECK(sw::detail::narrow_number(sw::dtype::float4_e2m1fn, 0xf7) == 6);
}

TEST_CASE("halves and bfloat16 have their IEEE values", "[base][dtype]") {
  using sw::detail::bfloat16_number;
  using sw::detail::half_number;
  CHECK(half_number(0x3c00) == 1);
  CHECK(half_number(0xc500) == -5);
  CHECK(half_number(0x7bff) == 65504);
  CHECK(half_number(0x0001) == std::ldexp(1.0f, -24));
  CHECK((std::isinf(half_number(0xfc00)) && std::signbit(half_number(0xfc00))));
  CHECK(std::isnan(half_number(0x7e00)));
  CHECK(bfloat16_number(0xc040) == -3);
  CHECK(std::isinf(bfloat16_number(0x7f80)));
}

TEST_CASE("only the types of at most eight bits that C++ lacks are narrow", "[base][dtype]") {
  CHECK_FALSE(sw::detail::is_narrow_number(sw::dtype::uint64));
  CHECK_FALSE(sw::detail::is_narrow_number(sw::dtype::int8));
  CHECK_FALSE(sw::detail::is_narrow_number(sw::dtype::half));
  CHECK_FALSE(sw::detail::is_narrow_number(sw::dtype{34}));
}

TEST_CASE("a stored bool is true if its byte is not 0, as in a file of another program", "[base][dtype]") {
  const std::array bytes{std::byte{0}, std::byte{1}, std::byte{243}};
  CHECK_FALSE(sw::detail::element_at<bool>(bytes, 0));
  CHECK(sw::detail::element_at<bool>(bytes, 1));
  CHECK(sw::detail::element_at<bool>(bytes, 2));
}
