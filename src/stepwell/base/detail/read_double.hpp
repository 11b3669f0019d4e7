// SPDX-License-Identifier: Apache-2.0
//
// Internal: std::from_chars for numbers with a fraction, which libc++ lacks before version 20.
#pragma once

#include "stepwell/base/detail/default_float_mode.hpp"
#include "stepwell/base/detail/float_bits.hpp"

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <string>
#include <string_view>
#include <system_error>
#ifdef __APPLE__
#include <xlocale.h>
#else
#include <locale.h>
#endif

namespace stepwell::detail {

/// Reads a number with strtod in the locale "C", with the rules of std::from_chars: the text has no space, no plus sign and no hexadecimal
/// number, and `into` is unchanged on failure.
inline std::from_chars_result read_double_with_strtod(const char* begin, const char* end, double& into) {
  const bool is_negative = begin != end && *begin == '-';
  std::string text(begin, end);  // strtod needs a final zero
  const auto digits = text.substr(is_negative ? 1 : 0);
  const bool can_begin = !digits.empty() && std::string_view("0123456789.iInN").find(digits.front()) != std::string_view::npos;
  if (!can_begin) { return {begin, std::errc::invalid_argument}; }
  if (digits.starts_with("0x") || digits.starts_with("0X")) { text.resize(text.size() - digits.size() + 1); }
  static const auto plain = ::newlocale(LC_ALL_MASK, "C", nullptr);
  char* stopped = nullptr;
  errno = 0;
  const double number = ::strtod_l(text.c_str(), &stopped, plain);
  if (stopped == text.c_str()) { return {begin, std::errc::invalid_argument}; }
  const char* const after = begin + (stopped - text.c_str());
  if (errno == ERANGE && (number == 0 || !is_finite(number))) { return {after, std::errc::result_out_of_range}; }
  into = number;
  return {after, std::errc()};
}

/// Reads a number with a fraction like std::from_chars, in every floating-point mode of the thread.
inline std::from_chars_result read_double(const char* begin, const char* end, double& into) {
  const default_float_mode mode;
#ifdef __cpp_lib_to_chars
  return std::from_chars(begin, end, into);
#else
  return read_double_with_strtod(begin, end, into);
#endif
}

}  // namespace stepwell::detail
