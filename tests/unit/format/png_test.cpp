// SPDX-License-Identifier: Apache-2.0
#include "bytes.hpp"

#include <stepwell/format/events/detail/png.hpp>

#include <zlib.h>
#include <cstdint>
#include <limits>

namespace sw = stepwell;
namespace format = stepwell::format;
namespace test = stepwell::test;

namespace {

struct picture {
  std::uint32_t width;
  std::uint32_t height;
  int depth;
  int color_type;
  std::string pixels;
};

std::uint32_t big_endian(std::string_view text) {
  std::uint32_t value = 0;
  for (const char c : text.substr(0, 4)) { value = value << 8 | static_cast<unsigned char>(c); }
  return value;
}

// Removes one chunk from the front of `file` and checks its checksum.
std::pair<std::string, std::string> take_chunk(std::string_view& file) {
  const auto size = big_endian(file);
  const auto covered = file.substr(4, 4 + size);
  CHECK(big_endian(file.substr(8 + size)) == crc32(0, reinterpret_cast<const Bytef*>(covered.data()), static_cast<uInt>(covered.size())));
  file.remove_prefix(12 + size);
  return {std::string(covered.substr(0, 4)), std::string(covered.substr(4))};
}

int paeth(int a, int b, int c) {
  const int pa = std::abs(b - c), pb = std::abs(a - c), pc = std::abs(a + b - 2 * c);
  return pa <= pb && pa <= pc ? a : pb <= pc ? b : c;
}

std::string unfiltered(const std::string& raw, std::size_t stride, std::size_t pixel) {
  std::string out;
  for (std::size_t at = 0; at < raw.size(); at += stride + 1) {
    for (std::size_t i = 0; i < stride; ++i) {
      const auto seen = [&](bool there, std::size_t back) { return there ? int{static_cast<unsigned char>(out[out.size() - back])} : 0; };
      const int a = seen(i >= pixel, pixel), b = seen(at > 0, stride), c = seen(i >= pixel && at > 0, stride + pixel);
      const int predicted[] = {0, a, b, (a + b) / 2, paeth(a, b, c)};
      const auto kind = static_cast<std::size_t>(raw[at]);
      REQUIRE(kind < 5);
      out.push_back(static_cast<char>(static_cast<unsigned char>(raw[at + 1 + i]) + predicted[kind]));
    }
  }
  return out;
}

// Decodes a picture, implemented independently from the PNG specification.
picture decode(std::string_view file, int channels) {
  REQUIRE(file.substr(0, 8) == std::string_view("\x89PNG\r\n\x1a\n", 8));
  file.remove_prefix(8);
  const auto [header_kind, header] = take_chunk(file);
  REQUIRE(header_kind == "IHDR");
  REQUIRE(header.size() == 13);
  const auto [data_kind, data] = take_chunk(file);
  REQUIRE(data_kind == "IDAT");
  CHECK(take_chunk(file).first == "IEND");
  CHECK(file.empty());
  picture seen{big_endian(header), big_endian(std::string_view(header).substr(4)), header[8], header[9], {}};
  CHECK(header.substr(10) == std::string(3, '\0'));
  const auto stride = std::size_t{seen.width} * static_cast<std::size_t>(channels);
  std::string raw((stride + 1) * seen.height, '\0');
  auto size = static_cast<uLongf>(raw.size());
  REQUIRE(uncompress(reinterpret_cast<Bytef*>(raw.data()), &size, reinterpret_cast<const Bytef*>(data.data()),
                     static_cast<uLong>(data.size())) == Z_OK);
  REQUIRE(size == raw.size());
  seen.pixels = unfiltered(raw, stride, static_cast<std::size_t>(channels));
  return seen;
}

std::string gradient(std::size_t size) {
  std::string pixels(size, '\0');
  for (std::size_t i = 0; i < size; ++i) { pixels[i] = static_cast<char>(i * i / 7 + (i % 13 == 0 ? 200 : 0)); }
  return pixels;
}

}  // namespace

TEST_CASE("pictures of every kind come back pixel by pixel", "[format][png]") {
  const int color_types[] = {0, 0, 4, 2, 6};
  for (int channels = 1; channels <= 4; ++channels) {
    for (const auto& [width, height] : {std::pair{1U, 1U}, {7U, 5U}, {28U, 28U}, {1U, 40U}, {300U, 2U}}) {
      for (const int level : {0, 1, 6, 9}) {
        const auto pixels = gradient(std::size_t{width} * height * static_cast<std::size_t>(channels));
        const auto file = format::encode_png(test::bytes_of(pixels), width, height, channels, level);
        REQUIRE(file.ok());
        const auto seen = decode(*file, channels);
        CHECK(seen.width == width);
        CHECK(seen.height == height);
        CHECK(seen.depth == 8);
        CHECK(seen.color_type == color_types[channels]);
        CHECK(seen.pixels == pixels);
      }
    }
  }
}

TEST_CASE("smooth pictures are smaller than their pixels", "[format][png]") {
  std::string pixels(256 * 256, '\0');
  for (std::size_t i = 0; i < pixels.size(); ++i) { pixels[i] = static_cast<char>(i / 256 + i % 256); }
  CHECK(format::encode_png(test::bytes_of(pixels), 256, 256, 1)->size() < pixels.size() / 20);
}

TEST_CASE("an image with an invalid size, channel or level is refused", "[format][png]") {
  const std::string pixels(12, 'x');
  const auto refused = [&](std::uint32_t width, std::uint32_t height, int channels, int level = 6) {
    const auto file = format::encode_png(test::bytes_of(pixels), width, height, channels, level);
    return !file.ok() && file.error().code == sw::errc::invalid_argument;
  };
  CHECK_FALSE(refused(2, 2, 3));
  CHECK(refused(2, 3, 3));
  CHECK(refused(0, 2, 3));
  CHECK(refused(12, 1, 0));
  CHECK(refused(4, 3, -1));
  CHECK(refused(1, 1, 12));
  CHECK(refused(2, 2, 3, 10));
  CHECK(refused(1U << 31, 1U << 31, 4));
  CHECK(refused(std::numeric_limits<std::uint32_t>::max(), std::numeric_limits<std::uint32_t>::max(), 1));
}
