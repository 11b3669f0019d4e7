// SPDX-License-Identifier: Apache-2.0
#include "stepwell/format/weights/detail/zip_directory.hpp"

#include "stepwell/format/detail/coding.hpp"

#include <fmt/format.h>
#include <algorithm>

namespace stepwell::format {
namespace {

using namespace std::string_view_literals;

constexpr std::size_t end_size = 22;
constexpr std::size_t locator_size = 20;
constexpr std::size_t entry_size = 46;
constexpr std::uint32_t in_zip64 = 0xffffffff;          // the value is in the extra field
constexpr std::uint64_t greatest_deflate_ratio = 1032;  // of deflate

status damaged_zip(std::string_view why) { return {errc::data_loss, fmt::format("the ZIP archive is damaged: {}", why)}; }

template<class Number>
std::uint64_t number_at(std::string_view bytes, std::size_t at) noexcept {
  return read_fixed<Number>(bytes.substr(at));
}

/// Replaces the numbers of `member` that the extra field has.
bool read_zip64(std::string_view extra, zip_member& member) {
  const bool is_needed = member.size == in_zip64 || member.packed == in_zip64 || member.header == in_zip64;
  while (is_needed && extra.size() >= 4) {
    const auto size = number_at<std::uint16_t>(extra, 2);
    auto field = extra.substr(4);
    if (field.size() < size) { return false; }
    const bool is_zip64 = number_at<std::uint16_t>(extra, 0) == 1;
    extra = field.substr(size);
    if (!is_zip64) { continue; }
    field = field.substr(0, size);
    for (auto* value : {&member.size, &member.packed, &member.header}) {
      if (*value != in_zip64) { continue; }
      if (field.size() < 8) { return false; }
      *value = number_at<std::uint64_t>(field, 0);
      field.remove_prefix(8);
    }
    return true;
  }
  return !is_needed;
}

}  // namespace

result<zip_directory_place> find_zip_directory(std::string_view tail, std::uint64_t file_size) {
  for (auto at = tail.rfind("PK\5\6"sv); at != std::string_view::npos;
       at = at == 0 ? std::string_view::npos : tail.rfind("PK\5\6"sv, at - 1)) {
    const auto end = tail.substr(at);
    if (end.size() < end_size || number_at<std::uint16_t>(end, 20) != end.size() - end_size) {
      continue;
    }  // these bytes are in the comment
    if (number_at<std::uint16_t>(end, 4) != number_at<std::uint16_t>(end, 6)) {
      return status(errc::unimplemented, "the ZIP archive consists of several files");
    }
    const auto before = file_size - end.size();
    if (at >= locator_size && tail.substr(at - locator_size).starts_with("PK\6\7"sv)) {
      const zip_directory_place record{number_at<std::uint64_t>(tail, at - locator_size + 8), zip64_end_size, true};
      if (record.offset > before || before - record.offset < zip64_end_size) { return damaged_zip("its end lies outside the file"); }
      return record;
    }
    const zip_directory_place found{number_at<std::uint32_t>(end, 16), number_at<std::uint32_t>(end, 12), false};
    if (found.offset > before || found.size > before - found.offset) { return damaged_zip("its directory lies outside the file"); }
    return found;
  }
  return damaged_zip("it has no end; the file may have been truncated");
}

result<zip_directory_place> decode_zip64_end(std::string_view record, std::uint64_t file_size) {
  if (record.size() < zip64_end_size || !record.starts_with("PK\6\6"sv)) { return damaged_zip("its end is missing"); }
  const zip_directory_place found{number_at<std::uint64_t>(record, 48), number_at<std::uint64_t>(record, 40), false};
  if (found.offset > file_size || found.size > file_size - found.offset) { return damaged_zip("its directory lies outside the file"); }
  return found;
}

result<std::vector<zip_member>> decode_zip_directory(std::string_view directory) {
  std::vector<zip_member> members;
  while (!directory.empty()) {
    if (directory.size() < entry_size || !directory.starts_with("PK\1\2"sv)) { return damaged_zip("an entry of its directory is cut off"); }
    const auto name_size = number_at<std::uint16_t>(directory, 28);
    const auto extra_size = number_at<std::uint16_t>(directory, 30);
    const auto whole = entry_size + name_size + extra_size + number_at<std::uint16_t>(directory, 32);
    if (directory.size() < whole) { return damaged_zip("an entry of its directory is cut off"); }
    zip_member member{.name = std::string(directory.substr(entry_size, name_size)),
                      .header = number_at<std::uint32_t>(directory, 42),
                      .packed = number_at<std::uint32_t>(directory, 20),
                      .size = number_at<std::uint32_t>(directory, 24),
                      .crc32 = read_fixed<std::uint32_t>(directory.substr(16))};
    if (!read_zip64(directory.substr(entry_size + name_size, extra_size), member)) { return damaged_zip("an extra field is too short"); }
    const auto method = number_at<std::uint16_t>(directory, 10);
    member.is_deflated = method == 8;
    if ((number_at<std::uint16_t>(directory, 8) & 1u) != 0 || (method != 0 && method != 8)) {
      return status(errc::unimplemented,
                    fmt::format("\"{}\" in the ZIP archive is encrypted or compressed with method {}", to_utf8(member.name), method));
    }
    const bool is_possible = member.is_deflated ? member.size / greatest_deflate_ratio <= member.packed : member.size == member.packed;
    if (!is_possible) { return damaged_zip(fmt::format("\"{}\" has an impossible size", to_utf8(member.name))); }
    members.push_back(std::move(member));
    directory.remove_prefix(whole);
  }
  std::ranges::sort(members, {}, &zip_member::header);
  return members;
}

result<std::uint64_t> decode_zip_local_size(std::string_view header) {
  if (!header.starts_with("PK\3\4"sv)) { return damaged_zip("a member has no header"); }
  return zip_local_size + number_at<std::uint16_t>(header, 26) + number_at<std::uint16_t>(header, 28);
}

}  // namespace stepwell::format
