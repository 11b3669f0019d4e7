// SPDX-License-Identifier: Apache-2.0
#include "stepwell/format/checkpoint/detail/string_tensor.hpp"

#include "stepwell/format/detail/coding.hpp"
#include "stepwell/kernel/detail/crc32c.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace stepwell::format {
namespace {

status damaged(const char* what) { return {errc::data_loss, what}; }

std::uint32_t extend(std::uint32_t crc, std::string_view bytes) { return kernel::crc32c(std::as_bytes(std::span(bytes)), crc); }

std::uint32_t extend_length(std::uint32_t crc, std::uint64_t length) {
  std::string fixed;
  append_fixed(fixed, length);
  return extend(crc, std::string_view(fixed).substr(0, length <= std::numeric_limits<std::uint32_t>::max() ? 4 : 8));
}

}  // namespace

encoded_strings encode_strings(std::span<const std::string> elements) {
  encoded_strings made;
  std::uint32_t crc = 0;
  for (const auto& element : elements) {
    append_varint(made.bytes, element.size());
    crc = extend_length(crc, element.size());
  }
  std::string lengths_crc;
  append_fixed(lengths_crc, kernel::crc32c_mask(crc));
  made.bytes.append(lengths_crc);
  crc = extend(crc, lengths_crc);
  for (const auto& element : elements) {
    made.bytes.append(element);
    crc = extend(crc, element);
  }
  made.crc32c = kernel::crc32c_mask(crc);
  return made;
}

result<decoded_strings> decode_strings(std::string_view bytes, std::uint64_t count) {
  if (count > bytes.size()) { return damaged("a string tensor has fewer bytes than elements"); }
  if (bytes.empty()) { return decoded_strings{}; }
  string_checker checker(bytes.size(), count);
  if (auto fed = checker.feed(std::as_bytes(std::span(bytes))); !fed) { return std::move(fed).error(); }
  const auto crc = checker.finish();
  if (!crc) { return crc.error(); }
  std::vector<std::uint64_t> lengths(count);
  for (auto& length : lengths) { length = *take_varint(bytes); }
  bytes.remove_prefix(4);  // the checksum of the lengths
  decoded_strings decoded{.elements = {}, .crc32c = *crc};
  decoded.elements.reserve(lengths.size());
  for (const auto length : lengths) {
    decoded.elements.emplace_back(bytes.substr(0, length));
    bytes.remove_prefix(length);
  }
  return decoded;
}

result<void> string_checker::add_lengths(std::uint64_t length, std::uint64_t count) {
  if (length > size_ - std::min(size_, total_)) { return damaged("a string ends after the end of its tensor"); }
  total_ += length * count;
  crc_ = count == 1 ? extend_length(crc_, length) : kernel::crc32c_zeros(4 * count, crc_);  // several lengths are all zero
  left_ -= count;
  if (left_ == 0 && (taken_ > size_ || size_ - taken_ < 4 || size_ - taken_ - 4 != total_)) {
    return damaged("a string tensor has the wrong size");
  }
  return {};
}

result<void> string_checker::take_length_byte(unsigned char byte) {
  if (length_bytes_ == 9 && byte > 1) { return damaged("a length in a string tensor has more than 64 bits"); }
  length_ |= std::uint64_t{byte & 0x7Fu} << (7 * length_bytes_++);
  if (byte >= 0x80) { return {}; }
  length_bytes_ = 0;
  return add_lengths(std::exchange(length_, 0), 1);
}

result<void> string_checker::take_checksum_byte(unsigned char byte) {
  stored_ |= std::uint32_t{byte} << (8 * stored_bytes_++);
  if (stored_bytes_ < 4) { return {}; }
  if (stored_ != kernel::crc32c_mask(crc_)) { return damaged("the checksum does not match the lengths of strings"); }
  std::string fixed;
  append_fixed(fixed, stored_);
  crc_ = extend(crc_, fixed);
  return {};
}

result<void> string_checker::feed(std::span<const std::byte> bytes) {
  while (!bytes.empty() && stored_bytes_ < 4) {
    const auto byte = std::to_integer<unsigned char>(bytes.front());
    bytes = bytes.subspan(1);
    ++taken_;
    if (auto taken = left_ != 0 ? take_length_byte(byte) : take_checksum_byte(byte); !taken) { return taken; }
  }
  taken_ += bytes.size();
  crc_ = kernel::crc32c(bytes, crc_);
  return {};
}

result<void> string_checker::feed_zeros(std::uint64_t count) {
  constexpr std::array<std::byte, 16> zeros{};
  while (count != 0 && stored_bytes_ < 4) {
    const bool are_lengths = left_ != 0 && length_bytes_ == 0;  // each byte is the length of an empty string
    const auto some = are_lengths ? std::min(count, left_) : std::uint64_t{1};
    if (are_lengths) { taken_ += some; }
    if (auto taken = are_lengths ? add_lengths(0, some) : feed(std::span(zeros).first(1)); !taken) { return taken; }
    count -= some;
  }
  taken_ += count;
  crc_ = kernel::crc32c_zeros(count, crc_);
  return {};
}

result<std::uint32_t> string_checker::finish() const {
  if (size_ == 0 && count_ == 0) { return kernel::crc32c_mask(crc_); }
  if (taken_ != size_ || left_ != 0 || stored_bytes_ < 4 || (count_ == 0 && size_ != 4)) {
    return damaged("a string tensor has the wrong size");
  }
  return kernel::crc32c_mask(crc_);
}

}  // namespace stepwell::format
