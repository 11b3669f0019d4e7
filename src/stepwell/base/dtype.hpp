// SPDX-License-Identifier: Apache-2.0
//
// Element types of tensors, with the numbers of TensorFlow's DataType.
#pragma once

#include <complex>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <type_traits>

namespace stepwell {

/// The type of a tensor's elements. The values are those of TensorFlow's DataType and are stored in files.
enum class dtype : std::int32_t {
  invalid = 0,
  float32 = 1,
  float64 = 2,
  int32 = 3,
  uint8 = 4,
  int16 = 5,
  int8 = 6,
  string = 7,
  complex64 = 8,
  int64 = 9,
  boolean = 10,
  qint8 = 11,
  quint8 = 12,
  qint32 = 13,
  bfloat16 = 14,
  qint16 = 15,
  quint16 = 16,
  uint16 = 17,
  complex128 = 18,
  half = 19,
  resource = 20,
  variant = 21,
  uint32 = 22,
  uint64 = 23,
  float8_e5m2 = 24,
  float8_e4m3fn = 25,
  float8_e4m3fnuz = 26,
  float8_e4m3b11fnuz = 27,
  float8_e5m2fnuz = 28,
  int4 = 29,
  uint4 = 30,
  int2 = 31,
  uint2 = 32,
  float4_e2m1fn = 33,
};

/// Returns the size of one element in bytes, in memory and in files. Returns 0 if elements have no fixed size (string, variant,
/// resource) and for unknown types. Elements of 2 and 4 bits take one byte each, as in TensorFlow.
[[nodiscard]] constexpr std::size_t size_of(dtype type) noexcept {
  switch (type) {
    case dtype::uint8:
    case dtype::int8:
    case dtype::boolean:
    case dtype::qint8:
    case dtype::quint8:
    case dtype::float8_e5m2:
    case dtype::float8_e4m3fn:
    case dtype::float8_e4m3fnuz:
    case dtype::float8_e4m3b11fnuz:
    case dtype::float8_e5m2fnuz:
    case dtype::int4:
    case dtype::uint4:
    case dtype::int2:
    case dtype::uint2:
    case dtype::float4_e2m1fn: return 1;
    case dtype::int16:
    case dtype::uint16:
    case dtype::half:
    case dtype::bfloat16:
    case dtype::qint16:
    case dtype::quint16: return 2;
    case dtype::float32:
    case dtype::int32:
    case dtype::uint32:
    case dtype::qint32: return 4;
    case dtype::float64:
    case dtype::int64:
    case dtype::uint64:
    case dtype::complex64: return 8;
    case dtype::complex128: return 16;
    default: return 0;
  }
}

/// Returns TensorFlow's name of the type, for example `DT_FLOAT`. Returns `DT_INVALID` for unknown numbers.
[[nodiscard]] constexpr std::string_view to_string(dtype type) noexcept {
  constexpr std::string_view names[] = {"DT_INVALID",
                                        "DT_FLOAT",
                                        "DT_DOUBLE",
                                        "DT_INT32",
                                        "DT_UINT8",
                                        "DT_INT16",
                                        "DT_INT8",
                                        "DT_STRING",
                                        "DT_COMPLEX64",
                                        "DT_INT64",
                                        "DT_BOOL",
                                        "DT_QINT8",
                                        "DT_QUINT8",
                                        "DT_QINT32",
                                        "DT_BFLOAT16",
                                        "DT_QINT16",
                                        "DT_QUINT16",
                                        "DT_UINT16",
                                        "DT_COMPLEX128",
                                        "DT_HALF",
                                        "DT_RESOURCE",
                                        "DT_VARIANT",
                                        "DT_UINT32",
                                        "DT_UINT64",
                                        "DT_FLOAT8_E5M2",
                                        "DT_FLOAT8_E4M3FN",
                                        "DT_FLOAT8_E4M3FNUZ",
                                        "DT_FLOAT8_E4M3B11FNUZ",
                                        "DT_FLOAT8_E5M2FNUZ",
                                        "DT_INT4",
                                        "DT_UINT4",
                                        "DT_INT2",
                                        "DT_UINT2",
                                        "DT_FLOAT4_E2M1FN"};
  const auto index = static_cast<std::size_t>(type);
  return index < std::size(names) ? names[index] : names[0];
}

namespace detail {
template<class T>
concept character =
    std::same_as<T, char> || std::same_as<T, wchar_t> || std::same_as<T, char8_t> || std::same_as<T, char16_t> || std::same_as<T, char32_t>;

template<class T>
constexpr dtype dtype_of_element() {
  if constexpr (character<T>) {
    return dtype::invalid;
  }  // characters are text, not numbers
  else if constexpr (std::same_as<T, bool>) {
    return dtype::boolean;
  } else if constexpr (std::same_as<T, float>) {
    return dtype::float32;
  } else if constexpr (std::same_as<T, double>) {
    return dtype::float64;
  } else if constexpr (std::same_as<T, std::complex<float>>) {
    return dtype::complex64;
  } else if constexpr (std::same_as<T, std::complex<double>>) {
    return dtype::complex128;
  } else if constexpr (std::same_as<T, std::string>) {
    return dtype::string;
  } else if constexpr (std::integral<T> && sizeof(T) == 1) {
    return std::signed_integral<T> ? dtype::int8 : dtype::uint8;
  } else if constexpr (std::integral<T> && sizeof(T) == 2) {
    return std::signed_integral<T> ? dtype::int16 : dtype::uint16;
  } else if constexpr (std::integral<T> && sizeof(T) == 4) {
    return std::signed_integral<T> ? dtype::int32 : dtype::uint32;
  } else if constexpr (std::integral<T> && sizeof(T) == 8) {
    return std::signed_integral<T> ? dtype::int64 : dtype::uint64;
  } else {
    return dtype::invalid;
  }
}
}  // namespace detail

/// The dtype of a C++ element type, or `invalid` if there is none.
template<class T>
inline constexpr dtype dtype_of = detail::dtype_of_element<std::remove_cv_t<T>>();

/// A C++ type that can be the fixed-size element of a variable.
template<class T>
concept tensor_element = size_of(dtype_of<T>) != 0;

}  // namespace stepwell
