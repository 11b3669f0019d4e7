// SPDX-License-Identifier: Apache-2.0
//
// All entries of a table in memory.
#pragma once

#include <stepwell/format/checkpoint/detail/table.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stepwell::test {

/// Returns all entries of a table, in order. @errors Those of `format::visit_table`.
inline result<std::vector<std::pair<std::string, std::string>>> read_table(std::string_view file,
                                                                           std::size_t max_block = std::size_t{8} << 20) {
  std::vector<std::pair<std::string, std::string>> entries;
  const auto keep = [&](std::string_view key, std::string_view value) -> result<void> {
    entries.emplace_back(key, value);
    return {};
  };
  if (auto read = format::visit_table(file, keep, max_block); !read) { return std::move(read).error(); }
  return entries;
}

}  // namespace stepwell::test
