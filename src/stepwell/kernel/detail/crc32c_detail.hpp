// SPDX-License-Identifier: Apache-2.0
//
// Private to the crc32c sources: polynomials over GF(2), and the common parts of the paths.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

namespace stepwell::kernel::detail {

/// A function that returns the raw state (not inverted) after `size` more bytes.
using crc32c_update = std::uint32_t (*)(std::uint32_t state, const std::byte* bytes, std::size_t size) noexcept;

std::uint32_t update_portable(std::uint32_t state, const std::byte* bytes, std::size_t size) noexcept;
/// Returns the path, or null if it is not compiled in or the machine lacks the instructions.
crc32c_update sse42_path() noexcept;
crc32c_update armv8_path() noexcept;

inline constexpr std::uint32_t reflected_polynomial = 0x82F63B78;

/// Returns a * b mod P. The polynomials are reflected: the top bit is x^0.
[[nodiscard]] constexpr std::uint32_t multiply_mod_p(std::uint32_t a, std::uint32_t b) noexcept {
  std::uint32_t product = 0;
  for (std::uint32_t bit = 1U << 31; bit != 0; bit >>= 1) {
    if ((a & bit) != 0) { product ^= b; }
    b = (b & 1) != 0 ? (b >> 1) ^ reflected_polynomial : b >> 1;
  }
  return product;
}

/// Returns x^(factor * exponent) mod P, where `base` is x^factor.
[[nodiscard]] constexpr std::uint32_t power_mod_p(std::uint32_t base, std::uint64_t exponent) noexcept {
  std::uint32_t power = 1U << 31;
  for (; exponent != 0; exponent >>= 1) {
    if ((exponent & 1) != 0) { power = multiply_mod_p(power, base); }
    base = multiply_mod_p(base, base);
  }
  return power;
}

inline constexpr std::uint32_t x_to_the_1 = 1U << 30;
inline constexpr std::uint32_t x_to_the_8 = 1U << 23;

[[nodiscard]] inline std::uint64_t load_64(const std::byte* bytes) noexcept {
  std::uint64_t word;
  std::memcpy(&word, bytes, sizeof word);
  return word;
}

}  // namespace stepwell::kernel::detail
