// SPDX-License-Identifier: Apache-2.0
#include "tool/base64.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace stepwell::tool {

std::string base64_of(std::string_view bytes) {
  constexpr std::string_view letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const auto group = bytes.substr(at, 3);
    std::uint32_t bits = 0;
    for (std::size_t i = 0; i < 3; ++i) { bits = bits << 8 | (i < group.size() ? static_cast<unsigned char>(group[i]) : 0u); }
    for (std::size_t i = 0; i < 4; ++i) { text += i <= group.size() ? letters[bits >> (18 - 6 * i) & 63u] : '='; }
  }
  return text;
}

}  // namespace stepwell::tool
