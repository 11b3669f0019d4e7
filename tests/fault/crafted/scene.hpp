// SPDX-License-Identifier: Apache-2.0
//
// Internal to the crafted cases: the directory being written, and functions shared by several kinds of cases.
#pragma once

#include "fault/crafted/choices.hpp"
#include "support/file_text.hpp"

#include <stepwell/format/detail/coding.hpp>
#include <stepwell/format/events/record.hpp>
#include <stepwell/kernel/detail/crc32c.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stepwell::test {

/// The directory of one case, while it is written.
struct scene {
  std::string directory;
  const std::map<std::string, std::string>& good;
  choices random;

  [[nodiscard]] std::string path(std::string_view name) const { return directory + "/" + std::string(name); }
  [[nodiscard]] const std::string& original(std::string_view name) const { return good.at(std::string(name)); }
  void write(std::string_view name, const std::string& text) const { write_file_text(path(name), text); }
};

inline std::uint32_t masked(std::string_view bytes) { return kernel::crc32c_mask(kernel::crc32c(std::as_bytes(std::span(bytes)))); }

inline std::string repeated(std::string_view piece, std::size_t times) {
  std::string all;
  for (std::size_t i = 0; i < times; ++i) { all += piece; }
  return all;
}

inline std::string sized_field(unsigned number, std::string_view content) {
  std::string made;
  format::append_varint(made, number << 3U | 2U);
  format::append_varint(made, content.size());
  return made.append(content);
}

inline std::string record_of(std::string_view data) {
  std::vector<std::byte> made;
  format::append_record(made, std::as_bytes(std::span(data)));
  return {reinterpret_cast<const char*>(made.data()), made.size()};
}

/// One kind of case. Writes the directory and returns a description.
using craft = std::string (*)(scene&);

std::string change_entries(scene& in);
std::string many_tensors(scene& in);
std::string sparse_strings(scene& in);
std::string shared_prefixes(scene& in);
std::string compressed_claim(scene& in);
std::string swollen_entry(scene& in);
std::string large_record(scene& in);
std::string swollen_event(scene& in);
std::string hostile_names(scene& in);

}  // namespace stepwell::test
