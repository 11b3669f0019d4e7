// SPDX-License-Identifier: Apache-2.0
#include "stepwell/format/detail/coding.hpp"

#include "stepwell/base/detail/printable.hpp"

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

}  // namespace

std::optional<std::uint64_t> take_any_varint(std::string_view& in) noexcept {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < in.size() && i < 10; ++i) {
    const auto byte = static_cast<unsigned char>(in[i]);
    if (i == 9 && byte > 1) { return std::nullopt; }
    value |= std::uint64_t{byte & 0x7Fu} << (7 * i);
    if (byte < 0x80) {
      in.remove_prefix(i + 1);
      return value;
    }
  }
  return std::nullopt;
}

bool is_utf8(std::string_view text) noexcept {
  for (text.remove_prefix(ascii_prefix(text)); !text.empty();) {
    const auto size = stepwell::detail::utf8_sequence_size(text);
    if (size == 0) { return false; }
    text.remove_prefix(size);
  }
  return true;
}

std::string to_utf8(std::string_view text) {
  if (is_utf8(text)) { return std::string(text); }
  std::string good;
  while (!text.empty()) {
    const auto size = stepwell::detail::utf8_sequence_size(text);
    good.append(size == 0 ? std::string_view("\xEF\xBF\xBD") : text.substr(0, size));
    text.remove_prefix(size == 0 ? 1 : size);
  }
  return good;
}

}  // namespace stepwell::format
