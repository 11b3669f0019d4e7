// SPDX-License-Identifier: Apache-2.0
//
// Private: the C++ type of a dtype that is known at run time only.
#pragma once

#include "stepwell/base/detail/float_bits.hpp"
#include "stepwell/base/tensor.hpp"

#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

namespace stepwell::detail {

/// The stored bits of a number for which C++20 has no type: half, bfloat16, float8, int4, ...
template<dtype Type>
struct stored_number {
  std::conditional_t<size_of(Type) == 2, std::uint16_t, std::uint8_t> bits;
};

/// Returns the exact value of the element.
template<dtype Type>
[[nodiscard]] float to_float(stored_number<Type> value) noexcept {
  if constexpr (Type == dtype::half) {
    return half_number(value.bits);
  } else if constexpr (Type == dtype::bfloat16) {
    return bfloat16_number(value.bits);
  } else {
    return narrow_number(Type, value.bits);
  }
}

/// Returns the element as a double, which is exact except for 64-bit integers above 2^53. Not for complex numbers.
template<class T>
  requires(std::is_arithmetic_v<T> || requires(T value) { to_float(value); })
[[nodiscard]] double to_double(T value) noexcept {
  if constexpr (std::is_arithmetic_v<T>) {
    return widened(value);
  } else {
    return widened(to_float(value));
  }
}

/// Calls `act` with a `std::type_identity` of the type in which elements of `type` are stored in memory. Returns false if there is none
/// (strings, variants).
template<class Act>
bool visit_dtype(dtype type, Act&& act) {
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

/// Returns element `index` of `bytes`, which may have any alignment. A `bool` is true if its byte is not 0.
template<class T>
[[nodiscard]] T element_at(std::span<const std::byte> bytes, std::size_t index) noexcept {
  if constexpr (std::is_same_v<T, bool>) {
    return bytes[index] != std::byte{0};
  } else {
    T value;
    std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof(T));
    return value;
  }
}

}  // namespace stepwell::detail
