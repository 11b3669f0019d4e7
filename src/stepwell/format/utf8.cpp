// SPDX-License-Identifier: Apache-2.0
#include "stepwell/format/utf8.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace stepwell::format {
namespace {

std::size_t ascii_prefix(std::string_view text) noexcept {
  std::size_t at = 0;
  for (std::uint64_t word = 0; at + sizeof word <= text.size(); at += sizeof word) {
    std::memcpy(&word, text.data() + at, sizeof word);
    if ((word & 0x8080808080808080) != 0) { break; }
  }
  while (at < text.size() && static_cast<unsigned char>(text[at]) < 0x80) { ++at; }
  return at;
}

// Bytes of the good sequence `text` begins with; 0 if it is bad: stray or missing continuation bytes, longer than
// needed, a surrogate, or beyond U+10FFFF.
std::size_t sequence_size(std::string_view text) noexcept {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) { return 1; }
  const std::size_t size = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < size) { return 0; }
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xC0) != 0x80) { return 0; }
  }
  const bool is_too_long = (first == 0xE0 && byte(1) < 0xA0) || (first == 0xF0 && byte(1) < 0x90);
  const bool is_surrogate = first == 0xED && byte(1) > 0x9F;
  const bool is_beyond = first == 0xF4 && byte(1) > 0x8F;
  return is_too_long || is_surrogate || is_beyond ? 0 : size;
}

}  // namespace

bool is_utf8(std::string_view text) noexcept {
  for (text.remove_prefix(ascii_prefix(text)); !text.empty();) {
    const auto size = sequence_size(text);
    if (size == 0) { return false; }
    text.remove_prefix(size);
  }
  return true;
}

std::string to_utf8(std::string_view text) {
  if (is_utf8(text)) { return std::string(text); }
  std::string good;
  while (!text.empty()) {
    const auto size = sequence_size(text);
    good.append(size == 0 ? std::string_view("\xEF\xBF\xBD") : text.substr(0, size));
    text.remove_prefix(size == 0 ? 1 : size);
  }
  return good;
}

}  // namespace stepwell::format
