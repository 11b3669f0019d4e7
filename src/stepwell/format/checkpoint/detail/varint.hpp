// SPDX-License-Identifier: Apache-2.0
//
// Protobuf's base-128 varints and little-endian numbers of fixed size, in strings.
#pragma once

#include "stepwell/format/detail/little_endian.hpp"

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace stepwell::format {

/// Appends `value` with seven bits per byte, lowest bits first.
inline void append_varint(std::string& out, std::uint64_t value) {
  while (value >= 0x80) {
    out.push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  out.push_back(static_cast<char>(value));
}

/// Removes a varint from the front of `in` and returns it. Returns nullopt and leaves `in` unchanged if the varint is incomplete or exceeds
/// 64 bits.
[[nodiscard]] inline std::optional<std::uint64_t> take_varint(std::string_view& in) noexcept {
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

/// Appends the bytes of `value`, lowest byte first.
template<std::unsigned_integral T>
void append_fixed(std::string& out, T value) {
  std::array<std::byte, sizeof(T)> bytes;
  store_little(bytes.data(), value);
  out.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

/// Returns the number in the first `sizeof(T)` bytes of `in`, lowest byte first. @pre `in` has that many bytes.
template<std::unsigned_integral T>
[[nodiscard]] T read_fixed(std::string_view in) noexcept {
  return load_little<T>(reinterpret_cast<const std::byte*>(in.data()));
}

}  // namespace stepwell::format
