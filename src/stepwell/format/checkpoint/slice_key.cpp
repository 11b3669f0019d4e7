// SPDX-License-Identifier: Apache-2.0
//
// The ordered code of slice keys. The encoded bytes sort in the same order as the encoded values.
#include "stepwell/format/checkpoint/bundle.hpp"

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>

namespace stepwell::format {
namespace {

constexpr std::size_t max_signed_bytes = 10;

void append_big_endian(std::string& out, std::uint64_t value, std::size_t bytes) {
  while (bytes-- > 0) { out.push_back(bytes < 8 ? static_cast<char>(value >> (8 * bytes)) : '\0'); }
}

void append_unsigned(std::string& out, std::uint64_t value) {
  const auto bytes = static_cast<std::size_t>((std::bit_width(value) + 7) / 8);
  out.push_back(static_cast<char>(bytes));
  append_big_endian(out, value, bytes);
}

void append_text(std::string& out, std::string_view text) {
  for (const char byte : text) {
    out.push_back(byte);
    if (byte == '\0') { out.push_back('\xFF'); }
    if (byte == '\xFF') { out.push_back('\0'); }
  }
  out.append({'\0', '\x01'});
}

/// Returns the number of bytes for a signed number. `magnitude` is the number itself, or its complement if it is negative. Each byte holds
/// 7 bits of the number, and one bit in total is the sign.
std::size_t signed_bytes(std::uint64_t magnitude) { return static_cast<std::size_t>(std::bit_width(magnitude)) / 7 + 1; }

void append_signed(std::string& out, std::int64_t value) {
  const auto bits = static_cast<std::uint64_t>(value < 0 ? ~value : value);
  const auto bytes = signed_bytes(bits);
  std::string code;
  append_big_endian(code, bits, bytes);
  for (std::size_t bit = 0; bit < bytes; ++bit) {  // the number of leading ones is the number of bytes
    code[bit / 8] = static_cast<char>(code[bit / 8] | 0x80 >> (bit % 8));
  }
  for (char& byte : code) { out.push_back(value < 0 ? static_cast<char>(~byte) : byte); }
}

std::optional<std::uint64_t> take_unsigned(std::string_view& in) {
  if (in.empty()) { return std::nullopt; }
  const auto bytes = static_cast<std::size_t>(static_cast<unsigned char>(in.front()));
  if (bytes > 8 || in.size() < 1 + bytes || (bytes > 0 && in[1] == '\0')) { return std::nullopt; }
  std::uint64_t value = 0;
  for (const char byte : in.substr(1, bytes)) { value = value << 8 | static_cast<unsigned char>(byte); }
  in.remove_prefix(1 + bytes);
  return value;
}

std::optional<std::string> take_text(std::string_view& in) {
  std::string text;
  for (std::size_t i = 0; i + 1 < in.size(); ++i) {
    if (in[i] != '\0' && in[i] != '\xFF') {
      text.push_back(in[i]);
      continue;
    }
    const char escape = in[i + 1];
    if (in[i] == '\0' && escape == '\x01') {
      in.remove_prefix(i + 2);
      return text;
    }
    if (escape != static_cast<char>(~in[i])) { return std::nullopt; }
    text.push_back(in[i++]);
  }
  return std::nullopt;
}

std::optional<std::int64_t> take_signed(std::string_view& in) {
  if (in.empty()) { return std::nullopt; }
  const bool is_negative = (in.front() & 0x80) == 0;
  const auto byte_at = [&](std::size_t i) { return static_cast<unsigned char>(is_negative ? ~in[i] : in[i]); };
  std::size_t bytes = 0;
  while (bytes < max_signed_bytes && bytes / 8 < in.size() && (byte_at(bytes / 8) & 0x80 >> (bytes % 8)) != 0) { ++bytes; }
  if (bytes > in.size()) { return std::nullopt; }
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < bytes; ++i) {
    const auto ones = bytes < 8 * i ? 0u : 0xFF00u >> std::min<std::size_t>(bytes - 8 * i, 8);  // bits of this byte that hold the length
    bits = bits << 8 | (byte_at(i) & ~ones & 0xFF);
  }
  if (bits >> 63 != 0) { return std::nullopt; }
  in.remove_prefix(bytes);
  return is_negative ? ~static_cast<std::int64_t>(bits) : static_cast<std::int64_t>(bits);
}

}  // namespace

std::string slice_key(std::string_view name, const tensor_slice& slice) {
  std::string key;
  append_unsigned(key, 0);
  append_text(key, name);
  append_unsigned(key, slice.size());
  for (const auto& extent : slice) {
    append_signed(key, extent.start);
    append_signed(key, extent.length);
  }
  return key;
}

result<parsed_slice_key> parse_slice_key(std::string_view key) {
  const auto whole = key;
  const status damaged(errc::data_loss, "a slice key does not parse");
  if (take_unsigned(key) != 0) { return damaged; }
  auto name = take_text(key);
  const auto rank = name ? take_unsigned(key) : std::nullopt;
  if (!rank || *rank > key.size() / 2) { return damaged; }
  parsed_slice_key parsed{std::move(*name), {}};
  for (std::uint64_t i = 0; i < *rank; ++i) {
    const auto start = take_signed(key);
    const auto length = start ? take_signed(key) : std::nullopt;
    if (!length) { return damaged; }
    parsed.slice.push_back({*start, *length});
  }
  if (slice_key(parsed.name, parsed.slice) != whole) { return damaged; }  // rejects other codes of the same values
  return parsed;
}

}  // namespace stepwell::format
