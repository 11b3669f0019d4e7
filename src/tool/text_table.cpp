// SPDX-License-Identifier: Apache-2.0
#include "tool/text_table.hpp"

#include "tool/text.hpp"

#include <algorithm>
#include <utility>

namespace stepwell::tool {

text_table::text_table(std::vector<std::string> headings) {
  for (auto& heading : headings) {
    is_right_.push_back(heading.starts_with('>'));
    if (is_right_.back()) { heading.erase(0, 1); }
    headings_.emplace_back(std::move(heading), ink::bold);
  }
}

std::vector<std::size_t> text_table::widths() const {
  std::vector<std::size_t> widest;
  for (const auto& heading : headings_) { widest.push_back(columns_of(heading.text)); }
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) { widest[i] = std::max(widest[i], columns_of(row[i].text)); }
  }
  return widest;
}

void text_table::print_row(console& to, const std::vector<cell>& row, const std::vector<std::size_t>& widths) const {
  std::string line;
  for (std::size_t i = 0; i < row.size(); ++i) {
    const std::string gap(widths[i] - columns_of(row[i].text), ' ');
    const bool is_last = i + 1 == row.size();
    if (is_right_[i]) { line += gap; }
    line += paint(to, row[i].colour, row[i].text);
    if (!is_right_[i] && !is_last) { line += gap; }
    if (!is_last) { line += "  "; }
  }
  line.erase(line.find_last_not_of(' ') + 1);
  to.out << line << '\n';
}

void text_table::print(console& to) const {
  const auto widest = widths();
  print_row(to, headings_, widest);
  for (const auto& row : rows_) { print_row(to, row, widest); }
}

}  // namespace stepwell::tool
