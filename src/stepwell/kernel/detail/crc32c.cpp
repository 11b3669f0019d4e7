// SPDX-License-Identifier: Apache-2.0
#include "stepwell/kernel/detail/crc32c.hpp"

#include <isa-l/crc.h>

#include <algorithm>

namespace stepwell::kernel {
namespace {

// Polynomials over GF(2), modulo the polynomial of the checksum. They are reflected: the top bit is x^0.

constexpr std::uint32_t reflected_polynomial = 0x82F63B78;
constexpr std::uint32_t x_to_the_8 = 1U << 23;

// Returns a * b mod P.
constexpr std::uint32_t multiply_mod_p(std::uint32_t a, std::uint32_t b) noexcept {
  std::uint32_t product = 0;
  for (std::uint32_t bit = 1U << 31; bit != 0; bit >>= 1) {
    if ((a & bit) != 0) { product ^= b; }
    b = (b & 1) != 0 ? (b >> 1) ^ reflected_polynomial : b >> 1;
  }
  return product;
}

// Returns x^(8 * exponent) mod P.
constexpr std::uint32_t power_of_x_to_the_8(std::uint64_t exponent) noexcept {
  std::uint32_t power = 1U << 31;
  for (auto base = x_to_the_8; exponent != 0; exponent >>= 1) {
    if ((exponent & 1) != 0) { power = multiply_mod_p(power, base); }
    base = multiply_mod_p(base, base);
  }
  return power;
}

}  // namespace

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t initial) noexcept {
  constexpr std::size_t longest = std::size_t{1} << 30;  // the length of crc32_iscsi is an int
  auto state = ~initial;
  while (!bytes.empty()) {
    const auto part = bytes.first(std::min(bytes.size(), longest));
    // The function takes a pointer that is not const, and does not write.
    auto* const begin = reinterpret_cast<unsigned char*>(const_cast<std::byte*>(part.data()));
    state = crc32_iscsi(begin, static_cast<int>(part.size()), state);
    bytes = bytes.subspan(part.size());
  }
  return ~state;
}

std::uint32_t crc32c_combine(std::uint32_t first, std::uint32_t second, std::uint64_t second_size) noexcept {
  return multiply_mod_p(first, power_of_x_to_the_8(second_size)) ^ second;
}

std::uint32_t crc32c_zeros(std::uint64_t count, std::uint32_t initial) noexcept { return ~crc32c_combine(~initial, 0, count); }

}  // namespace stepwell::kernel
