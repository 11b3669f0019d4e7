// SPDX-License-Identifier: Apache-2.0
#include "stepwell/format/events/detail/png.hpp"

#include <fmt/format.h>
#include <zlib.h>
#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>
#include <vector>

namespace stepwell::format {
namespace {

using pixel_row = std::span<const unsigned char>;

constexpr std::string_view signature("\x89PNG\r\n\x1a\n", 8);

void put_big_endian(std::string& out, std::uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) { out.push_back(static_cast<char>(value >> shift & 0xFF)); }
}

void put_chunk(std::string& out, std::string_view kind, std::string_view data) {
  put_big_endian(out, static_cast<std::uint32_t>(data.size()));
  const auto at = out.size();
  out.append(kind).append(data);
  const auto* const covered = reinterpret_cast<const Bytef*>(out.data() + at);
  put_big_endian(out, static_cast<std::uint32_t>(crc32_z(0, covered, out.size() - at)));
}

std::string header_of(std::uint32_t width, std::uint32_t height, int channels) {
  constexpr std::array<char, 5> color_types{0, 0, 4, 2, 6};
  std::string header;
  put_big_endian(header, width);
  put_big_endian(header, height);
  header.push_back(8);  // bits per channel
  header.push_back(color_types[static_cast<std::size_t>(channels)]);
  header.append(3, '\0');  // deflate, adaptive filters, not interlaced
  return header;
}

// The filters that are worth their cost: no prediction, prediction from the left pixel, prediction from the pixel above.
enum filter : unsigned char { none = 0, left = 1, above = 2 };

void apply(filter kind, pixel_row row, pixel_row row_above, std::size_t pixel, std::span<unsigned char> out) {
  out[0] = kind;
  for (std::size_t i = 0; i < row.size(); ++i) {
    const int predicted = kind == left ? (i < pixel ? 0 : row[i - pixel]) : kind == above ? row_above[i] : 0;
    out[i + 1] = static_cast<unsigned char>(row[i] - predicted);
  }
}

// Returns the sum of the absolute values of the bytes of a row, as signed numbers. By the usual heuristic, the row with the least sum
// compresses best.
std::uint64_t weight(std::span<const unsigned char> filtered) {
  std::uint64_t sum = 0;
  for (const auto byte : filtered.subspan(1)) { sum += std::min<unsigned>(byte, 256U - byte); }
  return sum;
}

std::vector<unsigned char> filter_rows(pixel_row pixels, std::size_t stride, std::size_t pixel) {
  std::vector<unsigned char> all;
  all.reserve(pixels.size() + pixels.size() / stride);
  std::vector<unsigned char> best(stride + 1);
  std::vector<unsigned char> candidate(stride + 1);
  const std::vector<unsigned char> zeros(stride);
  pixel_row row_above = zeros;
  for (std::size_t at = 0; at < pixels.size(); at += stride) {
    const auto row = pixels.subspan(at, stride);
    apply(none, row, row_above, pixel, best);
    for (const auto kind : {left, above}) {
      apply(kind, row, row_above, pixel, candidate);
      if (weight(candidate) < weight(best)) { best.swap(candidate); }
    }
    all.insert(all.end(), best.begin(), best.end());
    row_above = row;
  }
  return all;
}

result<std::string> deflated(std::span<const unsigned char> bytes, int level) {
  auto size = compressBound(static_cast<uLong>(bytes.size()));
  std::string packed(size, '\0');
  const int outcome = compress2(reinterpret_cast<Bytef*>(packed.data()), &size, bytes.data(), static_cast<uLong>(bytes.size()), level);
  if (outcome != Z_OK) { return status(errc::resource_exhausted, fmt::format("zlib could not compress the image: {}", zError(outcome))); }
  packed.resize(size);
  return packed;
}

// Maximum size of an image in bytes. All data is in one chunk, and the length of a chunk has 31 bits. Half of that leaves space for the
// overhead of deflate.
constexpr std::uint64_t greatest_picture = std::uint64_t{1} << 30;

bool is_picture(std::size_t bytes, std::uint64_t width, std::uint64_t height, int channels) {
  if (channels < 1 || channels > 4 || width == 0 || height == 0 || bytes > greatest_picture) { return false; }
  if (width > greatest_picture || height > greatest_picture) { return false; }
  return bytes == width * height * static_cast<std::uint64_t>(channels);
}

}  // namespace

result<std::string> encode_png(std::span<const std::byte> pixels, std::uint32_t width, std::uint32_t height, int channels, int level) {
  if (!is_picture(pixels.size(), width, height, channels) || level < 0 || level > 9) {
    return status(errc::invalid_argument,
                  fmt::format("{} bytes are not an image of {} x {} pixels with {} channels (1 to 4) for level {} (0 to 9)", pixels.size(),
                              width, height, channels, level));
  }
  const auto pixel = static_cast<std::size_t>(channels);
  const pixel_row bytes(reinterpret_cast<const unsigned char*>(pixels.data()), pixels.size());
  auto packed = deflated(filter_rows(bytes, width * pixel, pixel), level);
  if (!packed) { return packed; }
  std::string file(signature);
  put_chunk(file, "IHDR", header_of(width, height, channels));
  put_chunk(file, "IDAT", *packed);
  put_chunk(file, "IEND", "");
  return file;
}

}  // namespace stepwell::format
