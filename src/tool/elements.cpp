// SPDX-License-Identifier: Apache-2.0
#include "tool/elements.hpp"

#include <fmt/format.h>
#include <cmath>
#include <limits>

namespace stepwell::tool {

float to_float(half_bits value) noexcept {
  const int exponent = (value.bits >> 10) & 0x1f;
  const int fraction = value.bits & 0x3ff;
  const float sign = (value.bits & 0x8000) != 0 ? -1.0f : 1.0f;
  if (exponent == 0x1f) {
    return sign * (fraction == 0 ? std::numeric_limits<float>::infinity() : std::numeric_limits<float>::quiet_NaN());
  }
  return sign *
         (exponent == 0 ? std::ldexp(static_cast<float>(fraction), -24) : std::ldexp(static_cast<float>(fraction + 0x400), exponent - 25));
}

template<class T>
std::string element_text(T value) {
  if constexpr (is_complex_element<T>) {
    return fmt::format("{}{:+}j", value.real(), value.imag());
  } else if constexpr (std::is_same_v<T, bfloat16_bits> || std::is_same_v<T, half_bits>) {
    return fmt::format("{}", to_float(value));
  } else {
    return fmt::format("{}", value);
  }
}

template std::string element_text(bool);
template std::string element_text(float);
template std::string element_text(double);
template std::string element_text(std::int8_t);
template std::string element_text(std::int16_t);
template std::string element_text(std::int32_t);
template std::string element_text(std::int64_t);
template std::string element_text(std::uint8_t);
template std::string element_text(std::uint16_t);
template std::string element_text(std::uint32_t);
template std::string element_text(std::uint64_t);
template std::string element_text(bfloat16_bits);
template std::string element_text(half_bits);
template std::string element_text(std::complex<float>);
template std::string element_text(std::complex<double>);

}  // namespace stepwell::tool
