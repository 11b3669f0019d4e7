// SPDX-License-Identifier: Apache-2.0
//
// Conversion of floating-point formats without a C++20 type, and of integers narrower than a byte, to float.
#pragma once

#include "stepwell/base/dtype.hpp"

#include <cstdint>

namespace stepwell::detail {

/// Returns true for the types of at most 8 bits that have no C++ type and are stored in one byte: float8, float4, int4, int2, ...
[[nodiscard]] constexpr bool is_narrow_number(dtype type) noexcept { return type >= dtype::float8_e5m2 && type <= dtype::float4_e2m1fn; }

/// Returns the value of an element of such a type. The result is exact, because every value of these types is a float.
/// For types narrower than a byte only the low bits are used.
/// @pre `is_narrow_number(type)`.
[[nodiscard]] float narrow_number(dtype type, std::uint8_t bits) noexcept;

/// Returns the value of the 16 bits of an IEEE half.
[[nodiscard]] float half_number(std::uint16_t bits) noexcept;

/// Returns the value of the 16 bits of a bfloat16.
[[nodiscard]] float bfloat16_number(std::uint16_t bits) noexcept;

}  // namespace stepwell::detail
