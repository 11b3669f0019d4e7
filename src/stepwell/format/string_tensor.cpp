// SPDX-License-Identifier: Apache-2.0
#include "stepwell/format/string_tensor.hpp"

#include "stepwell/format/varint.hpp"
#include "stepwell/kernel/crc32c.hpp"

#include <limits>
#include <utility>

namespace stepwell::format {
namespace {

status damaged(const char* what) { return {errc::data_loss, what}; }

std::uint32_t extend(std::uint32_t crc, std::string_view bytes) { return kernel::crc32c(std::as_bytes(std::span(bytes)), crc); }

std::uint32_t extend_length(std::uint32_t crc, std::uint64_t length) {
  std::string fixed;
  if (length <= std::numeric_limits<std::uint32_t>::max()) {
    append_fixed(fixed, static_cast<std::uint32_t>(length));
  } else {
    append_fixed(fixed, length);
  }
  return extend(crc, fixed);
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
  if (count > bytes.size()) { return damaged("a string tensor is shorter than its number of elements"); }
  if (bytes.empty()) { return decoded_strings{}; }
  std::vector<std::uint64_t> lengths(count);
  std::uint32_t crc = 0;
  std::uint64_t total = 0;
  for (auto& length : lengths) {
    const auto taken = take_varint(bytes);
    if (!taken || total > bytes.size() || *taken > bytes.size() - total) { return damaged("a string of a tensor ends outside of it"); }
    length = *taken;
    total += length;
    crc = extend_length(crc, length);
  }
  if (bytes.size() < 4 || bytes.size() - 4 != total) { return damaged("a string tensor has the wrong size"); }
  if (read_fixed<std::uint32_t>(bytes) != kernel::crc32c_mask(crc)) {
    return damaged("the checksum does not match the lengths of strings");
  }
  crc = extend(crc, bytes.substr(0, 4));
  bytes.remove_prefix(4);
  decoded_strings decoded;
  decoded.elements.reserve(lengths.size());
  for (const auto length : lengths) {
    decoded.elements.emplace_back(bytes.substr(0, length));
    bytes.remove_prefix(length);
    crc = extend(crc, decoded.elements.back());
  }
  decoded.crc32c = kernel::crc32c_mask(crc);
  return decoded;
}

}  // namespace stepwell::format
