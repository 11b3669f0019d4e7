// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"

#include <stepwell/kernel/detail/crc32c.hpp>

#include <array>
#include <cstring>
#include <string>
#include <vector>

namespace kernel = stepwell::kernel;

namespace {

using bytes = std::vector<std::byte>;

bytes of_text(std::string_view text) {
  const auto all = std::as_bytes(std::span(text));
  return {all.begin(), all.end()};
}

bytes noise(std::size_t size) {
  bytes made(size);
  std::uint32_t state = 1;
  for (auto& byte : made) {
    state = state * 1664525 + 1013904223;
    byte = static_cast<std::byte>(state >> 24);
  }
  return made;
}

// Computes the reference one bit at a time, directly from the definition.
std::uint32_t bitwise(std::span<const std::byte> data, std::uint32_t initial = 0) {
  std::uint32_t state = ~initial;
  for (const auto byte : data) {
    state ^= std::to_integer<std::uint32_t>(byte);
    for (int bit = 0; bit < 8; ++bit) { state = (state >> 1) ^ ((state & 1) != 0 ? 0x82F63B78U : 0U); }
  }
  return ~state;
}

struct known_answer {
  bytes data;
  std::uint32_t crc;
  std::uint32_t masked;
};

std::vector<known_answer> known_answers() {
  bytes ascending(32);
  for (std::size_t i = 0; i < 32; ++i) { ascending[i] = static_cast<std::byte>(i); }
  return {{{}, 0x00000000, 0xa282ead8},
          {of_text("123456789"), 0xe3069283, 0xc78ab0e5},
          {of_text("a"), 0xc1d04330, 0x28e46e78},
          {bytes(32, std::byte{0}), 0x8a9136aa, 0x0fd7fffa},
          {bytes(32, std::byte{0xff}), 0x62a8ab43, 0xf909b029},
          {ascending, 0x46dd794e, 0x951f7892}};
}

}  // namespace

TEST_CASE("crc32c gives the known answers", "[kernel][crc32c]") {
  for (const auto& known : known_answers()) {
    CHECK(kernel::crc32c(known.data) == known.crc);
    CHECK(kernel::crc32c_mask(known.crc) == known.masked);
  }
}

TEST_CASE("crc32c agrees with the definition at every length and alignment", "[kernel][crc32c]") {
  const auto data = noise(3 * 4096 + 64);
  for (std::size_t size = 0; size <= 1300; ++size) {
    const auto at = size % 16;
    const auto piece = std::span(data).subspan(at, size);
    const auto expected = bitwise(piece, 0x12345678);
    if (kernel::crc32c(piece, 0x12345678) != expected) { FAIL("differs at length " << size << ", offset " << at); }
  }
  CHECK(kernel::crc32c(data) == bitwise(data));
}

TEST_CASE("a checksum can be continued over further bytes, cut anywhere", "[kernel][crc32c]") {
  const auto data = noise(900);
  const auto all = std::span<const std::byte>(data);
  const auto expected = kernel::crc32c(all);
  for (std::size_t cut = 0; cut <= data.size(); ++cut) {
    const auto first = kernel::crc32c(all.first(cut));
    const auto second = kernel::crc32c(all.subspan(cut));
    if (kernel::crc32c(all.subspan(cut), first) != expected || kernel::crc32c_combine(first, second, data.size() - cut) != expected) {
      FAIL("differs when cut at " << cut);
    }
  }
  SUCCEED();
}

TEST_CASE("the checksum over zeros needs no zeros", "[kernel][crc32c]") {
  for (const std::size_t count : {0U, 1U, 4U, 63U, 4096U, 100'000U}) {
    const std::vector<std::byte> zeros(count);
    for (const std::uint32_t initial : {0U, 1U, 0xFFFFFFFFU, 0x12345678U}) {
      CHECK(kernel::crc32c_zeros(count, initial) == kernel::crc32c(zeros, initial));
    }
  }
}
