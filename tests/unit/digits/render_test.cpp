// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"

#include <render.hpp>

#include <array>
#include <cstdint>
#include <numeric>

namespace {

std::uint64_t checksum(std::uint64_t seed, std::uint64_t count) {
  std::uint64_t sum = 0xCBF29CE484222325;
  const auto add = [&sum](std::uint8_t byte) { sum = (sum ^ byte) * 0x100000001B3; };
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto drawn = digits::render(seed, i);
    add(drawn.digit);
    for (const auto pixel : drawn.pixels) { add(pixel); }
  }
  return sum;
}

}  // namespace

TEST_CASE("the rendered images are the same bytes on every machine", "[digits][render]") { CHECK(checksum(20, 200) == 0x67F0F41680234C28); }

TEST_CASE("an image depends on its seed and number alone", "[digits][render]") {
  const auto once = digits::render(20, 77);
  static_cast<void>(digits::render(20, 3));
  CHECK(digits::render(20, 77).pixels == once.pixels);
  CHECK(digits::render(20, 78).pixels != once.pixels);
  CHECK(digits::render(21, 77).pixels != once.pixels);
}

TEST_CASE("every digit is drawn about as often as any other, with ink on mostly empty paper", "[digits][render]") {
  std::array<int, 10> drawn{};
  for (std::uint64_t i = 0; i < 1000; ++i) {
    const auto made = digits::render(20, i);
    ++drawn.at(made.digit);
    const double ink = std::accumulate(made.pixels.begin(), made.pixels.end(), 0.0) / (255.0 * digits::image_pixels);
    REQUIRE(ink > 0.015);
    REQUIRE(ink < 0.4);
  }
  for (const int count : drawn) {
    CHECK(count > 60);
    CHECK(count < 140);
  }
}
