// SPDX-License-Identifier: Apache-2.0
//
// Numbers as files hold them: little-endian on any machine, at any alignment. Compilers make one instruction of each.
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>

namespace stepwell::format {

/// @pre `at` has room for the number.
template<std::unsigned_integral T>
constexpr void store_little(std::byte* at, T value) noexcept {
  for (std::size_t i = 0; i < sizeof(T); ++i) { at[i] = static_cast<std::byte>(value >> (8 * i)); }
}

/// @pre `at` has that many bytes.
template<std::unsigned_integral T>
[[nodiscard]] constexpr T load_little(const std::byte* at) noexcept {
  T value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) { value = static_cast<T>(value | static_cast<T>(std::to_integer<T>(at[i]) << (8 * i))); }
  return value;
}

}  // namespace stepwell::format
