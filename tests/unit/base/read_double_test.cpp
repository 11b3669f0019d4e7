// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"

#include <stepwell/base/detail/read_double.hpp>

#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>

namespace {

using stepwell::detail::read_double_with_strtod;

#ifdef __cpp_lib_to_chars
void check_like_the_standard_library(std::string_view text) {
  CAPTURE(text);
  double ours = 4711;
  double theirs = 4711;
  const auto mine = read_double_with_strtod(text.data(), text.data() + text.size(), ours);
  const auto standard = std::from_chars(text.data(), text.data() + text.size(), theirs);
  CHECK(mine.ptr - text.data() == standard.ptr - text.data());
  CHECK(mine.ec == standard.ec);
  CHECK(std::bit_cast<std::uint64_t>(std::isnan(ours) ? 0 : ours) == std::bit_cast<std::uint64_t>(std::isnan(theirs) ? 0 : theirs));
}
#endif

}  // namespace

TEST_CASE("a number is read by strtod as std::from_chars reads it", "[base][read_double]") {
#ifdef __cpp_lib_to_chars
  for (const char* text : {"",         "1",
                           "-1",       "+1",
                           " 1",       "1 ",
                           "1.5",      "1,5",
                           ".5",       "5.",
                           ".",        "-",
                           "-.",       "1e5",
                           "1e",       "1e+",
                           "1E-5x",    "0x10",
                           "-0X1p3",   "0x",
                           "inf",      "-inf",
                           "INFx",     "infinity",
                           "in",       "nan",
                           "-nan",     "nan(1)",
                           "1e400",    "-1e400",
                           "1e-400",   "4.9e-324",
                           "2.3e-310", "1.7976931348623157e308",
                           "--1",      "-+1",
                           "- 1",      "abc",
                           "0.1",      "16777217"}) {
    check_like_the_standard_library(text);
  }
  std::mt19937_64 random(4711);
  for (int i = 0; i < 10'000; ++i) {
    std::array<char, 40> text{};
    const auto end = std::to_chars(text.data(), text.data() + text.size(), std::bit_cast<double>(random())).ptr;
    check_like_the_standard_library({text.data(), end});
  }
#else
  WARN("skipped: this standard library has no std::from_chars for double to compare with");
#endif
}
