// SPDX-License-Identifier: Apache-2.0
//
// Draws a chart in the terminal with dots: each character of the braille block is two dots wide and four dots high.
#include "tool/chart.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

namespace stepwell::tool {
namespace {

/// The colour of a line, and its character where dots cannot be used.
struct pen {
  ink colour = ink::plain;
  char mark = '*';
};
constexpr std::array pens = {pen{ink::cyan, '*'},  pen{ink::yellow, '+'}, pen{ink::magenta, 'o'},
                             pen{ink::green, 'x'}, pen{ink::red, '#'},    pen{ink::blue, '@'}};

pen pen_of(std::size_t line) noexcept { return pens[line % pens.size()]; }

/// A grid of dots, or of characters, row by row from the top. Each character is that of the line drawn last through it.
class canvas {
public:
  canvas(int columns, int rows, bool has_marks)
      : columns_(columns), rows_(rows), has_marks_(has_marks), cells_(static_cast<std::size_t>(columns) * static_cast<std::size_t>(rows)) {}

  [[nodiscard]] int width() const noexcept { return columns_ * (has_marks_ ? 1 : 2); }
  [[nodiscard]] int height() const noexcept { return rows_ * (has_marks_ ? 1 : 4); }

  void dot(int x, int y, pen with) {
    if (x < 0 || y < 0 || x >= width() || y >= height()) { return; }
    constexpr std::array<std::array<unsigned, 2>, 4> bits = {{{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}}};
    auto& cell = at(has_marks_ ? x : x / 2, has_marks_ ? y : y / 4);
    cell.dots |= has_marks_ ? 1u : bits[static_cast<std::size_t>(y % 4)][static_cast<std::size_t>(x % 2)];
    cell.with = with;
  }
  void line(int x0, int y0, int x1, int y1, pen with) {
    const int steps = std::max({std::abs(x1 - x0), std::abs(y1 - y0), 1});
    for (int i = 0; i <= steps; ++i) {
      dot(x0 + static_cast<int>(std::lround(double(x1 - x0) * i / steps)), y0 + static_cast<int>(std::lround(double(y1 - y0) * i / steps)),
          with);
    }
  }
  [[nodiscard]] std::string row(int y, const console& to) {
    std::string text;
    for (int x = 0; x < columns_; ++x) {
      const auto& cell = at(x, y);
      text += cell.dots == 0 ? " " : paint(to, cell.with.colour, has_marks_ ? std::string(1, cell.with.mark) : braille(cell.dots));
    }
    text.erase(text.find_last_not_of(' ') + 1);
    return text;
  }

private:
  struct letter {
    unsigned dots = 0;
    pen with = {};
  };
  [[nodiscard]] letter& at(int x, int y) {
    return cells_[static_cast<std::size_t>(y) * static_cast<std::size_t>(columns_) + static_cast<std::size_t>(x)];
  }
  /// Returns the character U+2800 + `dots` as UTF-8.
  static std::string braille(unsigned dots) {
    return {'\xe2', static_cast<char>(0xa0 | dots >> 6), static_cast<char>(0x80 | (dots & 0x3f))};
  }

  int columns_;
  int rows_;
  bool has_marks_;
  std::vector<letter> cells_;
};

void draw(canvas& on, const series& line, const axis& x_axis, const axis& y_axis, pen with) {
  const auto x_of = [&](double x) { return static_cast<int>(std::lround(x_axis.place_of(x) * (on.width() - 1))); };
  const auto y_of = [&](double y) { return static_cast<int>(std::lround((1 - y_axis.place_of(y)) * (on.height() - 1))); };
  const point_group* before = nullptr;
  for (const auto& group : line.groups()) {
    if (before != nullptr && before->last_x <= group.first_x) {
      on.line(x_of(before->last_x), y_of(before->last), x_of(group.first_x), y_of(group.first), with);
    }
    on.line(x_of(group.first_x), y_of(group.first), x_of(group.last_x), y_of(group.last), with);
    on.line(x_of(group.first_x), y_of(group.min), x_of(group.first_x), y_of(group.max), with);
    before = &group;
  }
}

/// Returns the line of tick labels below the chart. Labels that would touch the previous one are omitted.
std::string x_labels(const axis& x_axis, int margin, int columns) {
  std::string text(static_cast<std::size_t>(margin + columns), ' ');
  std::size_t free_from = 0;
  for (const auto& tick : x_axis.ticks()) {
    const auto length = tick.text.size();
    const auto middle = static_cast<double>(margin) + tick.place * (columns - 1);
    auto from = static_cast<std::size_t>(std::max(0.0, std::round(middle - static_cast<double>(length - 1) / 2)));
    from = std::min(from, text.size() - std::min(text.size(), length));
    if (from < free_from) { continue; }
    text.replace(from, length, tick.text);
    free_from = from + length + 2;
  }
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

/// Returns the axis line below the chart, with a mark at each tick.
std::string x_line(const axis& x_axis, int columns, bool ascii) {
  std::vector<bool> is_tick(static_cast<std::size_t>(columns));
  for (const auto& tick : x_axis.ticks()) { is_tick[static_cast<std::size_t>(std::lround(tick.place * (columns - 1)))] = true; }
  std::string text = ascii ? "+" : "└";
  for (const bool marked : is_tick) { text += ascii ? (marked ? "+" : "-") : (marked ? "┬" : "─"); }
  return text;
}

void print_legend(const chart& drawn, bool has_marks, console& to) {
  const auto& lines = drawn.lines;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const auto& line = lines[i];
    const auto sign = has_marks && lines.size() > 1 ? std::string(2, pen_of(i).mark) : to.ascii ? "--" : "──";
    to.out << "  " << paint(to, pen_of(i).colour, sign) << ' ' << printable(to, line.name());
    if (!line.groups().empty()) {
      const auto values = y_range({line});
      to.out << fmt::format("  last {} at step {}, from {} to {}, {}", number_text(line.groups().back().last),
                            step_of(line.groups().back().last_x, drawn.origin), number_text(values.low), number_text(values.high),
                            count_text(line.points(), "point"));
    }
    to.out << paint(to, ink::red, left_out_text(line)) << '\n';
  }
}

}  // namespace

std::string left_out_text(const series& line) {
  std::string text;
  if (line.not_finite() != 0) { text = fmt::format(", and {} not finite", line.not_finite()); }
  if (line.not_positive() != 0) {
    text += fmt::format(", {}{} of 0 or below left out (the axis is logarithmic)", text.empty() ? "and " : "", line.not_positive());
  }
  return text;
}

void draw_in_terminal(const chart& drawn, console& to) {
  const bool has_marks = to.ascii || (!to.colours && drawn.lines.size() > 1);
  const int rows = std::clamp(drawn.height, 3, 1000);
  const axis y_axis(y_range(drawn.lines), static_cast<std::size_t>(std::max(2, rows / 4 + 1)), true, drawn.log_scale);
  std::size_t widest = 0;
  for (const auto& tick : y_axis.ticks()) { widest = std::max(widest, tick.text.size()); }
  const int margin = static_cast<int>(widest) + 2;
  const int columns = std::clamp(drawn.width - margin - 1, 10, 10000);
  axis x_axis(x_range(drawn.lines), static_cast<std::size_t>(std::max(2, columns / 12)), false);
  x_axis.count_from(drawn.origin);
  canvas on(columns, rows, has_marks);
  for (std::size_t i = 0; i < drawn.lines.size(); ++i) { draw(on, drawn.lines[i], x_axis, y_axis, pen_of(i)); }

  to.out << std::string(static_cast<std::size_t>(margin), ' ') << paint(to, ink::bold, printable(to, drawn.title)) << '\n';
  for (int row = 0; row < rows; ++row) {
    std::string label;
    for (const auto& tick : y_axis.ticks()) {
      if (std::lround((1 - tick.place) * (rows - 1)) == row) { label = tick.text; }
    }
    to.out << std::string(widest - label.size(), ' ') << label << ' '
           << paint(to, ink::dim, to.ascii ? (label.empty() ? "|" : "+") : (label.empty() ? "│" : "┤")) << on.row(row, to) << '\n';
  }
  to.out << std::string(widest + 1, ' ') << paint(to, ink::dim, x_line(x_axis, columns, to.ascii)) << '\n';
  to.out << x_labels(x_axis, margin, columns) << '\n';
  print_legend(drawn, has_marks, to);
}

}  // namespace stepwell::tool
