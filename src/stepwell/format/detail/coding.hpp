// SPDX-License-Identifier: Apache-2.0
//
// Byte-level encodings: little-endian numbers (the byte order of all files, on machines of any byte order and at any alignment),
// protobuf's base-128 varints, and UTF-8. The strings of protobuf must be UTF-8: readers reject a whole message if one byte is invalid.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace stepwell::format {

/// Writes `value` to `sizeof(T)` bytes at `at`. @pre There are that many bytes.
template<std::unsigned_integral T>
constexpr void store_little(std::byte* at, T value) noexcept {
  for (std::size_t i = 0; i < sizeof(T); ++i) { at[i] = static_cast<std::byte>(value >> (8 * i)); }
}

/// Returns the number in the `sizeof(T)` bytes at `at`. @pre There are that many bytes.
template<std::unsigned_integral T>
[[nodiscard]] constexpr T load_little(const std::byte* at) noexcept {
  T value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) { value = static_cast<T>(value | static_cast<T>(std::to_integer<T>(at[i]) << (8 * i))); }
  return value;
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

/// Appends `value` with seven bits per byte, lowest bits first.
inline void append_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) { out.push_back(static_cast<char>(value | 0x80)); }
  out.push_back(static_cast<char>(value));
}

/// Like `take_varint`, but slower for a varint of one byte.
[[nodiscard]] std::optional<std::uint64_t> take_any_varint(std::string_view& in) noexcept;

/// Removes a varint from the front of `in` and returns it. Returns nullopt and leaves `in` unchanged if the varint is incomplete or exceeds
/// 64 bits.
[[nodiscard]] inline std::optional<std::uint64_t> take_varint(std::string_view& in) noexcept {
  if (in.empty() || static_cast<unsigned char>(in.front()) >= 0x80) { return take_any_varint(in); }
  const std::uint64_t value = static_cast<unsigned char>(in.front());
  in.remove_prefix(1);
  return value;
}

/// Returns true if `text` is well-formed UTF-8. @cost Eight bytes per step up to the first character that is not ASCII.
[[nodiscard]] bool is_utf8(std::string_view text) noexcept;

/// Returns `text` with U+FFFD in place of each byte that is not part of a well-formed sequence.
[[nodiscard]] std::string to_utf8(std::string_view text);

}  // namespace stepwell::format
