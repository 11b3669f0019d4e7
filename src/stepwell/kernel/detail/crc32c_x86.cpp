// SPDX-License-Identifier: Apache-2.0
//
// CRC-32C by the crc32 instruction of SSE4.2. The instruction has a latency of three cycles and a throughput of one per cycle, so three
// independent streams use it fully. The states of the streams are joined by carry-less multiplication with powers of x that are known at
// compile time.
#include "stepwell/kernel/detail/crc32c_detail.hpp"

#if defined(__x86_64__) && defined(__GNUC__)

#include <immintrin.h>

namespace stepwell::kernel::detail {
namespace {

#define STEPWELL_TARGET_SSE42 __attribute__((target("sse4.2,pclmul")))

// Returns the factor that advances a state by `bytes` zero bytes: multiply the state by the factor, then apply crc32 to the product with a
// zero state. The product of two reflected states has 63 bits and is one bit too low, and crc32 with a zero state multiplies by x^32. Hence
// the exponent is reduced by 33.
constexpr std::uint32_t shift_factor(std::uint64_t bytes) { return power_mod_p(x_to_the_1, bytes * 8 - 33); }

STEPWELL_TARGET_SSE42 inline std::uint64_t multiply(std::uint32_t state, std::uint32_t factor) noexcept {
  const auto product = _mm_clmulepi64_si128(_mm_cvtsi32_si128(static_cast<int>(state)), _mm_cvtsi32_si128(static_cast<int>(factor)), 0);
  return static_cast<std::uint64_t>(_mm_cvtsi128_si64(product));
}

// Updates the state by all complete triples of `Stream` bytes, and advances `bytes` and `size`.
template<std::size_t Stream>
STEPWELL_TARGET_SSE42 inline std::uint64_t take_triples(std::uint64_t state, const std::byte*& bytes, std::size_t& size) noexcept {
  constexpr auto over_one = shift_factor(Stream);
  constexpr auto over_two = shift_factor(2 * Stream);
  for (; size >= 3 * Stream; bytes += 3 * Stream, size -= 3 * Stream) {
    std::uint64_t second = 0;
    std::uint64_t third = 0;
    for (std::size_t i = 0; i < Stream; i += 8) {
      state = _mm_crc32_u64(state, load_64(bytes + i));
      second = _mm_crc32_u64(second, load_64(bytes + Stream + i));
      third = _mm_crc32_u64(third, load_64(bytes + 2 * Stream + i));
    }
    const auto moved = multiply(static_cast<std::uint32_t>(state), over_two) ^ multiply(static_cast<std::uint32_t>(second), over_one);
    state = _mm_crc32_u64(0, moved) ^ third;
  }
  return state;
}

STEPWELL_TARGET_SSE42 std::uint32_t update_sse42(std::uint32_t start, const std::byte* bytes, std::size_t size) noexcept {
  std::uint64_t state = start;
  if (size >= std::size_t{3} * 128) {
    state = take_triples<2048>(state, bytes, size);
    state = take_triples<128>(state, bytes, size);
  }
  for (; size >= 8; bytes += 8, size -= 8) { state = _mm_crc32_u64(state, load_64(bytes)); }
  for (; size > 0; ++bytes, --size) { state = _mm_crc32_u8(static_cast<std::uint32_t>(state), std::to_integer<unsigned char>(*bytes)); }
  return static_cast<std::uint32_t>(state);
}

#undef STEPWELL_TARGET_SSE42

}  // namespace

crc32c_update sse42_path() noexcept {
  return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul") ? update_sse42 : nullptr;
}

}  // namespace stepwell::kernel::detail

#else

namespace stepwell::kernel::detail {
crc32c_update sse42_path() noexcept { return nullptr; }
}  // namespace stepwell::kernel::detail

#endif
