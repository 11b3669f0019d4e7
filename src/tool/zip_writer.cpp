// SPDX-License-Identifier: Apache-2.0
#include "tool/zip_writer.hpp"

#include "stepwell/base/error.hpp"
#include "stepwell/format/checkpoint/detail/varint.hpp"
#include "stepwell/format/text/detail/utf8.hpp"

#include <zlib.h>
#include <algorithm>
#include <string_view>

namespace stepwell::tool {
namespace {

using format::append_fixed;

constexpr std::size_t buffer_size = std::size_t{1} << 20;
constexpr std::uint32_t in_zip64 = 0xffffffff;  // marks that the number is in the ZIP64 field
constexpr std::uint16_t first_of_january_1980 = 0x21;

bool is_large(std::uint64_t number) { return number >= in_zip64; }
std::uint32_t short_form(std::uint64_t number) { return is_large(number) ? in_zip64 : static_cast<std::uint32_t>(number); }

/// Appends version, flags, method, time, date, CRC, two sizes and the length of the name, which are the same in both headers.
void append_common(std::string& out, const std::string& name, std::uint64_t size, std::uint32_t crc32, bool is_zip64) {
  append_fixed<std::uint16_t>(out, is_zip64 ? 45 : 20);
  append_fixed<std::uint16_t>(out, format::is_utf8(name) ? 0x800 : 0);
  append_fixed<std::uint16_t>(out, 0);  // stored without compression
  append_fixed<std::uint16_t>(out, 0);
  append_fixed<std::uint16_t>(out, first_of_january_1980);
  append_fixed<std::uint32_t>(out, crc32);
  append_fixed<std::uint32_t>(out, short_form(size));
  append_fixed<std::uint32_t>(out, short_form(size));
  append_fixed<std::uint16_t>(out, static_cast<std::uint16_t>(name.size()));
}

/// Returns the ZIP64 field with these numbers, or an empty text if there are none.
std::string zip64_field(std::initializer_list<std::uint64_t> numbers) {
  std::string field;
  if (numbers.size() == 0) { return field; }
  append_fixed<std::uint16_t>(field, 1);
  append_fixed<std::uint16_t>(field, static_cast<std::uint16_t>(8 * numbers.size()));
  for (const auto number : numbers) { append_fixed(field, number); }
  return field;
}

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

}  // namespace

std::uint32_t crc32_of(std::span<const std::byte> bytes, std::uint32_t before) noexcept {
  return static_cast<std::uint32_t>(crc32_z(before, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size()));
}

void zip_writer::flush() {
  value_or_throw(target_.append(buffer_));
  buffer_.clear();
}

void zip_writer::append(std::span<const std::byte> bytes) {
  buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  if (buffer_.size() >= buffer_size) { flush(); }
}

void zip_writer::begin(const std::string& name, std::uint64_t size, std::uint32_t crc32) {
  if (name.size() > 0xffff) { throw invalid_argument_error("a name is too long for a ZIP archive", target_.final_path()); }
  members_.push_back({name, size, crc32, target_.size() + buffer_.size()});
  const auto extra = is_large(size) ? zip64_field({size, size}) : "";
  std::string header = "PK\x03\x04";
  append_common(header, name, size, crc32, is_large(size));
  append_fixed(header, static_cast<std::uint16_t>(extra.size()));
  header += name;
  header += extra;
  append(bytes_of(header));
}

void zip_writer::finish() {
  const std::uint64_t begin = target_.size() + buffer_.size();
  for (const auto& [name, size, crc32, offset] : members_) {
    const auto extra = is_large(size) ? zip64_field({size, size, offset}) : is_large(offset) ? zip64_field({offset}) : "";
    std::string header = "PK\x01\x02";
    append_fixed<std::uint16_t>(header, 45);
    append_common(header, name, size, crc32, !extra.empty());
    append_fixed(header, static_cast<std::uint16_t>(extra.size()));
    append_fixed<std::uint16_t>(header, 0);  // no comment
    append_fixed<std::uint16_t>(header, 0);  // the first disk
    append_fixed<std::uint16_t>(header, 0);
    append_fixed<std::uint32_t>(header, 0);
    append_fixed(header, is_large(size) ? in_zip64 : short_form(offset));
    header += name;
    header += extra;
    append(bytes_of(header));
  }
  const std::uint64_t end = target_.size() + buffer_.size();
  const std::uint64_t count = members_.size();
  std::string closing;
  if (count >= 0xffff || is_large(end)) {
    closing += "PK\x06\x06";
    append_fixed<std::uint64_t>(closing, 44);
    append_fixed<std::uint16_t>(closing, 45);
    append_fixed<std::uint16_t>(closing, 45);
    append_fixed<std::uint64_t>(closing, 0);  // disks
    append_fixed(closing, count);
    append_fixed(closing, count);
    append_fixed(closing, end - begin);
    append_fixed(closing, begin);
    closing += "PK\x06\x07";
    append_fixed<std::uint32_t>(closing, 0);
    append_fixed(closing, end);
    append_fixed<std::uint32_t>(closing, 1);
  }
  closing += "PK\x05\x06";
  append_fixed<std::uint32_t>(closing, 0);
  for (int i = 0; i < 2; ++i) { append_fixed(closing, static_cast<std::uint16_t>(std::min<std::uint64_t>(count, 0xffff))); }
  append_fixed(closing, short_form(end - begin));
  append_fixed(closing, short_form(begin));
  append_fixed<std::uint16_t>(closing, 0);
  append(bytes_of(closing));
  flush();
  value_or_throw(target_.publish());
}

}  // namespace stepwell::tool
