// SPDX-License-Identifier: Apache-2.0
#include "stepwell/base/detail/printable.hpp"

namespace stepwell::detail {
namespace {

void append_escaped(std::string& shown, char byte) {
  constexpr std::string_view digits = "0123456789abcdef";
  const auto value = static_cast<unsigned char>(byte);
  shown.append("\\x").append({digits[value >> 4U], digits[value & 15U]});
}

std::string escaped(std::string_view text, bool keep_line_feeds) {
  std::string shown;
  shown.reserve(text.size());
  while (!text.empty()) {
    const auto size = utf8_sequence_size(text);
    const bool is_kept = size != 0 && (!is_control_character(text.substr(0, size)) || (keep_line_feeds && text.front() == '\n'));
    if (is_kept) {
      shown.append(text.substr(0, size));
    } else {
      append_escaped(shown, text.front());
    }
    text.remove_prefix(is_kept ? size : 1);
  }
  return shown;
}

}  // namespace

std::size_t utf8_sequence_size(std::string_view text) noexcept {
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

bool is_control_character(std::string_view sequence) noexcept {
  const auto first = static_cast<unsigned char>(sequence.front());
  return first < 0x20 || first == 0x7f || (first == 0xc2 && static_cast<unsigned char>(sequence[1]) < 0xa0);
}

std::string printable(std::string_view text) { return escaped(text, false); }

std::string printable_lines(std::string_view text) { return escaped(text, true); }

}  // namespace stepwell::detail
