// SPDX-License-Identifier: Apache-2.0
#include "stepwell/kernel/detail/crc32c.hpp"

#include <array>
#include <bit>
#include <cstring>
#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#elif defined(__aarch64__) && defined(__ARM_FEATURE_CRC32)
#include <arm_acle.h>
#endif

namespace stepwell::kernel {
namespace {

// A function that returns the raw state (not inverted) after `size` more bytes.
using crc32c_update = std::uint32_t (*)(std::uint32_t state, const std::byte* bytes, std::size_t size) noexcept;

// --- Polynomials over GF(2), modulo the polynomial of the checksum. They are reflected: the top bit is x^0. ---

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

// Returns x^(factor * exponent) mod P, where `base` is x^factor.
constexpr std::uint32_t power_mod_p(std::uint32_t base, std::uint64_t exponent) noexcept {
  std::uint32_t power = 1U << 31;
  for (; exponent != 0; exponent >>= 1) {
    if ((exponent & 1) != 0) { power = multiply_mod_p(power, base); }
    base = multiply_mod_p(base, base);
  }
  return power;
}

// --- The portable path ---

// tables[k][b] is the contribution of byte b to the state if k more bytes follow.
constexpr auto make_tables() {
  std::array<std::array<std::uint32_t, 256>, 8> tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) { tables[0][byte] = multiply_mod_p(byte, x_to_the_8); }
  for (std::size_t k = 1; k < 8; ++k) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const auto before = tables[k - 1][byte];
      tables[k][byte] = (before >> 8) ^ tables[0][before & 0xFF];
    }
  }
  return tables;
}

constexpr auto tables = make_tables();

// Reads a little-endian number on machines of any byte order. Compilers generate a single load if possible.
std::uint32_t load_32(const std::byte* bytes) noexcept {
  return std::to_integer<std::uint32_t>(bytes[0]) | std::to_integer<std::uint32_t>(bytes[1]) << 8 |
         std::to_integer<std::uint32_t>(bytes[2]) << 16 | std::to_integer<std::uint32_t>(bytes[3]) << 24;
}

std::uint32_t update_portable(std::uint32_t state, const std::byte* bytes, std::size_t size) noexcept {
  for (; size >= 8; bytes += 8, size -= 8) {
    const auto low = state ^ load_32(bytes);
    const auto high = load_32(bytes + 4);
    state = tables[7][low & 0xFF] ^ tables[6][low >> 8 & 0xFF] ^ tables[5][low >> 16 & 0xFF] ^ tables[4][low >> 24] ^
            tables[3][high & 0xFF] ^ tables[2][high >> 8 & 0xFF] ^ tables[1][high >> 16 & 0xFF] ^ tables[0][high >> 24];
  }
  for (; size > 0; ++bytes, --size) { state = (state >> 8) ^ tables[0][(state ^ std::to_integer<std::uint32_t>(*bytes)) & 0xFF]; }
  return state;
}

// --- The path of this machine's instructions ---

[[maybe_unused]] std::uint64_t load_64(const std::byte* bytes) noexcept {
  std::uint64_t word;
  std::memcpy(&word, bytes, sizeof word);
  return word;
}

#if defined(__x86_64__) && defined(__GNUC__)

// The crc32 instruction of SSE4.2 has a latency of three cycles and a throughput of one per cycle, so three independent streams use it
// fully. The states of the streams are joined by carry-less multiplication with powers of x that are known at compile time.
#define STEPWELL_TARGET_SSE42 __attribute__((target("sse4.2,pclmul")))

// Returns the factor that advances a state by `bytes` zero bytes: multiply the state by the factor, then apply crc32 to the product with a
// zero state. The product of two reflected states has 63 bits and is one bit too low, and crc32 with a zero state multiplies by x^32. Hence
// the exponent is reduced by 33.
constexpr std::uint32_t shift_factor(std::uint64_t bytes) { return power_mod_p(1U << 30, bytes * 8 - 33); }

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

crc32c_update machine_path() noexcept {
  return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul") ? update_sse42 : update_portable;
}
constexpr std::string_view machine_path_name = "sse42";

#elif defined(__aarch64__) && defined(__ARM_FEATURE_CRC32)

// The crc32c instruction of ARMv8 on three streams, if the compiler's target has it (ARMv8.1 and later, or +crc).
static_assert(std::endian::native == std::endian::little);

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

crc32c_update machine_path() noexcept { return update_armv8; }
constexpr std::string_view machine_path_name = "armv8";

#else

crc32c_update machine_path() noexcept { return update_portable; }
constexpr std::string_view machine_path_name = "portable";

#endif

// Returns the fastest path of this machine, which is selected at the first call.
crc32c_update fastest() noexcept {
  static const crc32c_update path = machine_path();
  return path;
}

}  // namespace

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t initial) noexcept {
  return ~fastest()(~initial, bytes.data(), bytes.size());
}

std::uint32_t crc32c_portable(std::span<const std::byte> bytes, std::uint32_t initial) noexcept {
  return ~update_portable(~initial, bytes.data(), bytes.size());
}

std::string_view crc32c_path() noexcept { return fastest() == update_portable ? "portable" : machine_path_name; }

std::uint32_t crc32c_combine(std::uint32_t first, std::uint32_t second, std::uint64_t second_size) noexcept {
  return multiply_mod_p(first, power_mod_p(x_to_the_8, second_size)) ^ second;
}

std::uint32_t crc32c_zeros(std::uint64_t count, std::uint32_t initial) noexcept { return ~crc32c_combine(~initial, 0, count); }

}  // namespace stepwell::kernel
