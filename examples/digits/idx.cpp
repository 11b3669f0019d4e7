// SPDX-License-Identifier: Apache-2.0
#include "idx.hpp"

#include <stepwell/io/atomic_file.hpp>

#include <algorithm>
#include <array>
#include <utility>

namespace digits {
namespace {

namespace sw = stepwell;

constexpr std::byte unsigned_bytes{0x08};  // the element type, third byte of the magic number
constexpr std::size_t magic_size = 4;
constexpr std::size_t max_rank = 3;

constexpr std::size_t header_size(std::size_t rank) { return magic_size + 4 * rank; }

std::uint32_t big_endian(std::span<const std::byte> four) {
  std::uint32_t value = 0;
  for (const auto byte : four.first(4)) { value = value << 8 | std::to_integer<std::uint32_t>(byte); }
  return value;
}

/// Returns the product of `sizes`, or `limit + 1` if the product exceeds `limit`.
std::uint64_t product_up_to(std::span<const std::uint32_t> sizes, std::uint64_t limit) {
  if (std::ranges::count(sizes, 0U) != 0) { return 0; }
  std::uint64_t product = 1;
  for (const auto size : sizes) {
    product *= size;  // does not overflow: `product` is at most a file's size, `size` has 32 bits
    if (product > limit) { return limit + 1; }
  }
  return product;
}

sw::status damaged(std::string what) {
  return {sw::errc::data_loss, std::move(what) + "; give the original MNIST files, unpacked, or remove it"};
}

sw::status at(sw::status failure, const std::string& path) {
  failure.place = path;
  return failure;
}

/// Reads all of an open file.
sw::result<idx_array> read_array(sw::io::file& in, std::size_t rank) {
  const auto file_bytes = in.size();
  if (!file_bytes) { return file_bytes.error(); }
  std::array<std::byte, header_size(max_rank)> head{};
  const auto head_bytes = in.read_at(0, std::span(head).first(std::min(header_size(rank), head.size())));
  if (!head_bytes) { return head_bytes.error(); }
  auto sizes = decode_idx_header(std::span(head).first(*head_bytes), rank, *file_bytes);
  if (!sizes) { return std::move(sizes).error(); }

  idx_array array{std::move(sizes).value(), std::vector<std::uint8_t>(*file_bytes - header_size(rank))};
  const auto element_bytes = in.read_at(header_size(rank), std::as_writable_bytes(std::span(array.elements)));
  if (!element_bytes) { return element_bytes.error(); }
  if (*element_bytes != array.elements.size()) { return damaged("became shorter while it was read"); }
  return array;
}

}  // namespace

sw::result<std::vector<std::uint32_t>> decode_idx_header(std::span<const std::byte> head, std::size_t rank, std::uint64_t file_bytes) {
  if (rank == 0 || rank > max_rank) { return sw::status(sw::errc::invalid_argument, "an IDX file has 1 to 3 dimensions here"); }
  if (head.size() < header_size(rank)) { return damaged("too short for the header of an IDX file"); }
  if (big_endian(head) != (std::to_integer<std::uint32_t>(unsigned_bytes) << 8 | rank)) {
    return damaged("not an IDX file of unsigned bytes with " + std::to_string(rank) + " dimension(s): the first four bytes are " +
                   std::to_string(big_endian(head)));
  }
  std::vector<std::uint32_t> sizes(rank);
  for (std::size_t i = 0; i < rank; ++i) { sizes[i] = big_endian(head.subspan(header_size(i))); }

  const std::uint64_t elements = file_bytes - header_size(rank);
  if (product_up_to(sizes, elements) != elements) {
    return damaged("its header gives another number of elements than the " + std::to_string(elements) + " in the file");
  }
  return sizes;
}

std::vector<std::byte> encode_idx_header(std::span<const std::uint32_t> sizes) {
  std::vector<std::byte> head{std::byte{0}, std::byte{0}, unsigned_bytes, static_cast<std::byte>(sizes.size())};
  for (const auto size : sizes) {
    for (const int shift : {24, 16, 8, 0}) { head.push_back(static_cast<std::byte>(size >> shift & 0xFF)); }
  }
  return head;
}

sw::result<idx_array> read_idx(sw::io::file_system& files, const std::string& path, std::size_t rank) {
  auto in = files.open(path, sw::io::open_mode::read);
  if (!in) { return std::move(in).error(); }
  auto array = read_array(**in, rank);
  if (!array) { return at(std::move(array).error(), path); }
  return array;
}

sw::result<void> write_idx(sw::io::file_system& files, const std::string& path, const idx_array& array) {
  auto out = sw::io::atomic_file::create(files, path);
  if (!out) { return std::move(out).error(); }
  if (auto head = out->append(encode_idx_header(array.sizes)); !head) { return head; }
  if (auto rest = out->append(std::as_bytes(std::span(array.elements))); !rest) { return rest; }
  return out->publish();
}

}  // namespace digits
