// SPDX-License-Identifier: Apache-2.0
//
// CRC-32C by the crc32c instruction of ARMv8 on three streams, if the compiler's target has it (ARMv8.1 and later, or +crc).
#include "stepwell/kernel/detail/crc32c_detail.hpp"

#if defined(__aarch64__) && defined(__ARM_FEATURE_CRC32)

#include <arm_acle.h>

namespace stepwell::kernel::detail {
namespace {

// Bytes per stream. It is so long that the cost of joining the streams by multiplication in software is negligible.
constexpr std::size_t stream = 4096;

std::uint32_t take_triple(std::uint32_t state, const std::byte* bytes) noexcept {
  constexpr auto over_one = power_mod_p(x_to_the_8, stream);
  constexpr auto over_two = power_mod_p(x_to_the_8, 2 * stream);
  std::uint32_t second = 0;
  std::uint32_t third = 0;
  for (std::size_t i = 0; i < stream; i += 8) {
    state = __crc32cd(state, load_64(bytes + i));
    second = __crc32cd(second, load_64(bytes + stream + i));
    third = __crc32cd(third, load_64(bytes + 2 * stream + i));
  }
  return multiply_mod_p(state, over_two) ^ multiply_mod_p(second, over_one) ^ third;
}

std::uint32_t update_armv8(std::uint32_t state, const std::byte* bytes, std::size_t size) noexcept {
  for (; size >= 3 * stream; bytes += 3 * stream, size -= 3 * stream) { state = take_triple(state, bytes); }
  for (; size >= 8; bytes += 8, size -= 8) { state = __crc32cd(state, load_64(bytes)); }
  for (; size > 0; ++bytes, --size) { state = __crc32cb(state, std::to_integer<unsigned char>(*bytes)); }
  return state;
}

}  // namespace

crc32c_update armv8_path() noexcept {
  static_assert(std::endian::native == std::endian::little);
  return update_armv8;
}

}  // namespace stepwell::kernel::detail

#else

namespace stepwell::kernel::detail {
crc32c_update armv8_path() noexcept { return nullptr; }
}  // namespace stepwell::kernel::detail

#endif
