// SPDX-License-Identifier: Apache-2.0
//
// Elements of a tensor whose type is known at run time only.
#pragma once

#include "stepwell/base/tensor.hpp"

#include <fmt/format.h>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>

namespace stepwell::tool {

/// The stored bits of a number for which C++20 has no type: half, bfloat16, float8, int4, ...
template<dtype Type>
struct stored_number {
  std::conditional_t<size_of(Type) == 2, std::uint16_t, std::uint8_t> bits;
};

/// Returns the exact value of the element.
template<dtype Type>
[[nodiscard]] float to_float(stored_number<Type> value) noexcept {
  if constexpr (Type == dtype::half) {
    return stepwell::detail::half_number(value.bits);
  } else if constexpr (Type == dtype::bfloat16) {
    return stepwell::detail::bfloat16_number(value.bits);
  } else {
    return stepwell::detail::narrow_number(Type, value.bits);
  }
}

/// Calls `act` with a `std::type_identity` of the type in which elements of `type` are stored in memory. Returns false if there is none
/// (strings, variants).
template<class Act>
bool with_element_type(dtype type, Act&& act) {
  switch (type) {
    case dtype::float32: act(std::type_identity<float>{}); return true;
    case dtype::float64: act(std::type_identity<double>{}); return true;
    case dtype::int8:
    case dtype::qint8: act(std::type_identity<std::int8_t>{}); return true;
    case dtype::int16:
    case dtype::qint16: act(std::type_identity<std::int16_t>{}); return true;
    case dtype::int32:
    case dtype::qint32: act(std::type_identity<std::int32_t>{}); return true;
    case dtype::int64: act(std::type_identity<std::int64_t>{}); return true;
    case dtype::uint8:
    case dtype::quint8: act(std::type_identity<std::uint8_t>{}); return true;
    case dtype::uint16:
    case dtype::quint16: act(std::type_identity<std::uint16_t>{}); return true;
    case dtype::uint32: act(std::type_identity<std::uint32_t>{}); return true;
    case dtype::uint64: act(std::type_identity<std::uint64_t>{}); return true;
    case dtype::boolean: act(std::type_identity<bool>{}); return true;
    case dtype::bfloat16: act(std::type_identity<stored_number<dtype::bfloat16>>{}); return true;
    case dtype::half: act(std::type_identity<stored_number<dtype::half>>{}); return true;
    case dtype::float8_e5m2: act(std::type_identity<stored_number<dtype::float8_e5m2>>{}); return true;
    case dtype::float8_e4m3fn: act(std::type_identity<stored_number<dtype::float8_e4m3fn>>{}); return true;
    case dtype::float8_e4m3fnuz: act(std::type_identity<stored_number<dtype::float8_e4m3fnuz>>{}); return true;
    case dtype::float8_e4m3b11fnuz: act(std::type_identity<stored_number<dtype::float8_e4m3b11fnuz>>{}); return true;
    case dtype::float8_e5m2fnuz: act(std::type_identity<stored_number<dtype::float8_e5m2fnuz>>{}); return true;
    case dtype::float4_e2m1fn: act(std::type_identity<stored_number<dtype::float4_e2m1fn>>{}); return true;
    case dtype::int4: act(std::type_identity<stored_number<dtype::int4>>{}); return true;
    case dtype::uint4: act(std::type_identity<stored_number<dtype::uint4>>{}); return true;
    case dtype::int2: act(std::type_identity<stored_number<dtype::int2>>{}); return true;
    case dtype::uint2: act(std::type_identity<stored_number<dtype::uint2>>{}); return true;
    case dtype::complex64: act(std::type_identity<std::complex<float>>{}); return true;
    case dtype::complex128: act(std::type_identity<std::complex<double>>{}); return true;
    default: return false;
  }
}

/// Returns element `index` of `bytes`, which may have any alignment.
template<class T>
[[nodiscard]] T element_at(std::span<const std::byte> bytes, std::size_t index) noexcept {
  T value;
  std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof(T));
  return value;
}

template<class T>
inline constexpr bool is_complex_element = std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>;

/// Returns the element as a double, which is exact except for 64-bit integers above 2^53. Not for complex numbers.
template<class T>
[[nodiscard]] double to_double(T value) noexcept {
  if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<double>(value);
  } else {
    return static_cast<double>(to_float(value));
  }
}

/// Returns all digits of the element: parsing the text gives the same value. Examples: "true", "0.1", "1+2j".
template<class T>
[[nodiscard]] std::string element_text(T value) {
  if constexpr (is_complex_element<T>) {
    return fmt::format("{}{:+}j", value.real(), value.imag());
  } else if constexpr (std::is_arithmetic_v<T>) {
    return fmt::format("{}", value);
  } else {
    return fmt::format("{}", to_float(value));
  }
}

}  // namespace stepwell::tool
