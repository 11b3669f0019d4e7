// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"

#include <stepwell/kernel/detail/stream_copy.hpp>

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace kernel = stepwell::kernel;

namespace {

std::vector<std::byte> noise(std::size_t size) {
  std::vector<std::byte> made(size);
  std::uint32_t state = 7;
  for (auto& byte : made) {
    state = state * 1664525 + 1013904223;
    byte = static_cast<std::byte>(state >> 24);
  }
  return made;
}

}  // namespace

TEST_CASE("a streaming copy equals its source for each alignment, and changes nothing beside it", "[kernel]") {
  constexpr std::size_t block = std::size_t{4} * 4096;  // the unit of the fast path
  constexpr std::byte untouched{0xA5};
  const auto source = noise(3 * block + 64);
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, block - 1, block, block + 1, block + 15, 2 * block, 3 * block - 17}) {
    for (const std::size_t from : {0U, 1U, 15U}) {
      for (const std::size_t to : {0U, 1U, 8U, 15U, 16U}) {
        CAPTURE(size, from, to);
        std::vector<std::byte> copy(size + 64, untouched);
        const auto original = std::span(source).subspan(from, size);
        const auto target = std::span(copy).subspan(to, size);
        kernel::stream_copy(original, target);
        CHECK(std::ranges::equal(target, original));
        CHECK(std::ranges::all_of(std::span(copy).first(to), [](std::byte byte) { return byte == untouched; }));
        CHECK(std::ranges::all_of(std::span(copy).subspan(to + size), [](std::byte byte) { return byte == untouched; }));
      }
    }
  }
}
