// SPDX-License-Identifier: Apache-2.0
#include "tool/output.hpp"

#include "stepwell/base/detail/printable.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>

namespace stepwell::tool {

std::string paint(const console& to, ink colour, std::string_view text) {
  constexpr std::array<std::string_view, 9> codes = {"", "1", "2", "31", "32", "33", "34", "35", "36"};
  if (!to.colours || colour == ink::plain || text.empty()) { return std::string(text); }
  return fmt::format("\x1b[{}m{}\x1b[0m", codes[static_cast<std::size_t>(colour)], text);
}

void print_error(console& to, std::string_view what) { to.err << "stepwell: " << printable(to, what) << '\n'; }

std::string printable(std::string_view text) { return detail::printable(text); }

std::string printable(const console& to, std::string_view text) {
  auto made = printable(text);
  if (!to.ascii) { return made; }
  std::string escaped;
  for (const char letter : made) {
    if (static_cast<unsigned char>(letter) < 0x80) {
      escaped += letter;
    } else {
      escaped += fmt::format("\\x{:02x}", static_cast<unsigned char>(letter));
    }
  }
  return escaped;
}

std::size_t columns_of(std::string_view text) noexcept {
  std::size_t columns = 0;
  for (const char byte : text) { columns += (byte & '\xc0') != '\x80'; }
  return columns;
}

std::string size_text(std::uint64_t bytes) {
  constexpr std::array units = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) { return fmt::format("{} B", bytes); }
  double value = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  while (value >= 1023.95 && unit + 1 < units.size()) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.1f} {}", value, units[unit]);
}

std::string count_text(std::uint64_t count, std::string_view noun) { return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s"); }

std::string number_text(double value) { return fmt::format("{:.6g}", value); }

std::string time_text(double seconds) {
  constexpr double last = 253402300799.0;   // the end of the year 9999
  constexpr double first = -62167219200.0;  // the beginning of the year 0
  if (!(seconds >= first && seconds <= last)) { return "-"; }
  namespace chrono = std::chrono;
  const chrono::seconds whole(static_cast<std::int64_t>(std::floor(seconds)));
  const chrono::sys_days day{chrono::floor<chrono::days>(whole)};
  const chrono::year_month_day date(day);
  const auto in_day = (whole - day.time_since_epoch()).count();
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02}", int(date.year()), unsigned(date.month()), unsigned(date.day()), in_day / 3600,
                     in_day / 60 % 60, in_day % 60);
}

std::string duration_text(double seconds) {
  if (!(seconds >= 0 && seconds < 1e15)) { return "-"; }
  if (seconds < 1) { return fmt::format("{:.2g} s", seconds); }
  if (seconds < 60) { return fmt::format("{:.1f} s", seconds); }
  const auto whole = std::llround(seconds);
  if (whole < 3600) { return fmt::format("{} min {} s", whole / 60, whole % 60); }
  if (whole < 86400) { return fmt::format("{} h {} min", whole / 3600, whole / 60 % 60); }
  return fmt::format("{} d {} h", whole / 86400, whole / 3600 % 24);
}

std::string dtype_text(dtype type) {
  const bool is_unknown = type != dtype::invalid && to_string(type) == to_string(dtype::invalid);
  return is_unknown ? fmt::format("dtype {}", static_cast<std::int32_t>(type)) : std::string(to_string(type));
}

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
  if (!to.ascii) { return print_rows(to); }
  auto escaped = *this;
  const auto escape = [&](std::vector<cell>& row) {
    for (auto& one : row) { one.text = printable(to, one.text); }
  };
  escape(escaped.headings_);
  std::ranges::for_each(escaped.rows_, escape);
  escaped.print_rows(to);
}

void text_table::print_rows(console& to) const {
  const auto widest = widths();
  print_row(to, headings_, widest);
  for (const auto& row : rows_) { print_row(to, row, widest); }
}

}  // namespace stepwell::tool
