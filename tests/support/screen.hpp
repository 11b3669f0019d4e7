// SPDX-License-Identifier: Apache-2.0
//
// A terminal in memory: it executes the control codes that progress lines use, and shows the characters that a user sees.
#pragma once

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace stepwell::test {

class screen {
public:
  explicit screen(std::size_t columns) : columns_(columns) {}

  void write(std::string_view text) {
    while (!text.empty()) { text.remove_prefix(take(text)); }
  }
  /// Returns the lines, without spaces at their ends.
  [[nodiscard]] std::vector<std::string> lines() const {
    std::vector<std::string> all;
    for (const auto& row : rows_) {
      std::string line;
      for (const auto& cell : row) { line += cell; }
      line.erase(line.find_last_not_of(' ') + 1);
      all.push_back(std::move(line));
    }
    return all;
  }
  /// Returns true if a line was ever longer than the terminal is wide.
  [[nodiscard]] bool has_wrapped() const noexcept { return has_wrapped_; }

private:
  /// Executes the first code or character, and returns its size.
  std::size_t take(std::string_view text) {
    const auto first = static_cast<unsigned char>(text[0]);
    if (first == '\r') { return column_ = 0, 1; }
    if (first == '\n') {
      column_ = 0;  // as with the terminal's usual setting
      if (++row_ == rows_.size()) { rows_.emplace_back(); }
      return 1;
    }
    if (first == 0x1b) { return take_code(text); }
    const std::size_t size = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    put(std::string(text.substr(0, size)));
    return size;
  }
  std::size_t take_code(std::string_view text) {
    const auto end = text.find_first_of("AJKm");
    if (!text.starts_with("\x1b[") || end == std::string_view::npos) { throw std::logic_error("an unknown control code"); }
    if (text[end] == 'A') { row_ -= std::min<std::size_t>(row_, 1); }
    if (text[end] == 'K' || text[end] == 'J') { rows_[row_].resize(std::min(rows_[row_].size(), column_)); }
    if (text[end] == 'J') { rows_.resize(row_ + 1); }
    return end + 1;
  }
  void put(std::string cell) {
    if (column_ >= columns_) {
      has_wrapped_ = true;
      column_ = 0;
      if (++row_ == rows_.size()) { rows_.emplace_back(); }
    }
    auto& row = rows_[row_];
    if (row.size() <= column_) { row.resize(column_ + 1, " "); }
    row[column_++] = std::move(cell);
  }

  std::size_t columns_;
  std::vector<std::vector<std::string>> rows_ = {{}};
  std::size_t row_ = 0;
  std::size_t column_ = 0;
  bool has_wrapped_ = false;
};

}  // namespace stepwell::test
