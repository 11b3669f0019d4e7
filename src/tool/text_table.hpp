// SPDX-License-Identifier: Apache-2.0
//
// Tables with aligned columns.
#pragma once

#include "tool/console.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace stepwell::tool {

/// One cell. Its text must be printable.
struct cell {
  cell(std::string text_, ink colour_ = ink::plain) : text(std::move(text_)), colour(colour_) {}
  cell(const char* text_) : text(text_) {}
  std::string text;
  ink colour = ink::plain;
};

/// A table with a heading.
class text_table {
public:
  /// Creates a table. A heading that begins with '>' makes a right-aligned column of numbers.
  explicit text_table(std::vector<std::string> headings);

  void add(std::vector<cell> row) { rows_.push_back(std::move(row)); }
  [[nodiscard]] bool empty() const noexcept { return rows_.empty(); }
  void print(console& to) const;

private:
  [[nodiscard]] std::vector<std::size_t> widths() const;
  void print_row(console& to, const std::vector<cell>& row, const std::vector<std::size_t>& widths) const;

  std::vector<cell> headings_;
  std::vector<bool> is_right_;
  std::vector<std::vector<cell>> rows_;
};

}  // namespace stepwell::tool
