// SPDX-License-Identifier: Apache-2.0
//
// Tests and conversions of floating-point numbers by their bits. A program may be compiled with `-ffast-math`, which makes `std::isnan` and
// comparisons with NaN always false in the functions of headers. A thread may flush denormal numbers to zero. No header uses other tests:
// tests/hygiene/dependencies.sh.
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <type_traits>

namespace stepwell::detail {

/// The layout of a float or a double.
template<class T>
struct float_bits {
  using type = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  static constexpr type infinity = sizeof(T) == 4 ? type{0x7f80'0000} : static_cast<type>(0x7ff0'0000'0000'0000);
  static constexpr type least_normal = sizeof(T) == 4 ? type{0x0080'0000} : static_cast<type>(0x0010'0000'0000'0000);

  /// Returns the bits without the sign. The compiler learns nothing about them: from the type it could conclude that there is no NaN.
  [[nodiscard]] static type size_of(const T& value) noexcept {
    auto bits = std::bit_cast<type>(value);
    asm("" : "+r"(bits));
    return bits & (~type{0} >> 1);
  }
};

template<std::floating_point T>
[[nodiscard]] inline bool is_nan(const T& value) noexcept {
  if constexpr (sizeof(T) < 4) {
    return detail::is_nan(static_cast<float>(value));
  } else if constexpr (sizeof(T) <= 8) {
    return float_bits<T>::size_of(value) > float_bits<T>::infinity;
  } else {
    return detail::is_nan(static_cast<double>(value));
  }
}

/// Returns true unless the value is NaN or infinite.
template<std::floating_point T>
[[nodiscard]] inline bool is_finite(const T& value) noexcept {
  if constexpr (sizeof(T) < 4) {
    return detail::is_finite(static_cast<float>(value));
  } else if constexpr (sizeof(T) <= 8) {
    return float_bits<T>::size_of(value) < float_bits<T>::infinity;
  } else {
    return detail::is_finite(static_cast<double>(value * T{0x1p-15400L}));  // the greatest finite number becomes a finite double
  }
}

/// Returns the number as a double. A conversion by the processor makes a denormal float 0 in a thread that flushes denormal numbers.
[[nodiscard]] inline double widened(float value) noexcept {
  const auto size = float_bits<float>::size_of(value);
  if (size >= float_bits<float>::least_normal) [[likely]] { return static_cast<double>(value); }
  const double widened = static_cast<double>(static_cast<std::int32_t>(size)) * 0x1p-149;
  return std::bit_cast<std::int32_t>(value) < 0 ? -widened : widened;
}
template<class Number>
  requires std::is_arithmetic_v<Number>
[[nodiscard]] inline double widened(Number value) noexcept {
  return static_cast<double>(value);
}

}  // namespace stepwell::detail
