// SPDX-License-Identifier: Apache-2.0
//
// Little-endian numbers, the byte order of all files, on machines of any byte order and at any alignment. On little-endian machines
// compilers generate one instruction for each function.
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>

namespace stepwell::format {

/// Writes `value` to `sizeof(T)` bytes at `at`. @pre There are that many bytes.
template<std::unsigned_integral T>
constexpr void store_little(std::byte* at, T value) noexcept {
  for (std::size_t i = 0; i < sizeof(T); ++i) { at[i] = static_cast<std::byte>(value >> (8 * i)); }
}

/// Returns the number in the `sizeof(T)` bytes at `at`. @pre There are that many bytes.
template<std::unsigned_integral T>
[[nodiscard]] constexpr T load_little(const std::byte* at) noexcept {
  T value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) { value = static_cast<T>(value | static_cast<T>(std::to_integer<T>(at[i]) << (8 * i))); }
  return value;
}

}  // namespace stepwell::format
