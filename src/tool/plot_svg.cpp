// SPDX-License-Identifier: Apache-2.0
//
// Draws a chart as an SVG image.
#include "tool/chart.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>

namespace stepwell::tool {
namespace {

constexpr std::array<std::string_view, 6> palette = {"#0b6fb8", "#d95f02", "#1b9e77",
                                                     "#a6358c", "#b8860b", "#5b5bd6"};  // distinguishable with colour blindness
constexpr std::string_view ink_of_text = "#333";
constexpr std::string_view ink_of_grid = "#e4e4e4";

/// The area of the lines, without axis labels and margins.
struct frame {
  double left;
  double top;
  double width;
  double height;
};

std::string escaped(std::string_view text) {
  std::string made;
  for (const char letter : text) {
    switch (letter) {
      case '&': made += "&amp;"; break;
      case '<': made += "&lt;"; break;
      case '>': made += "&gt;"; break;
      case '"': made += "&quot;"; break;
      default: made += letter;
    }
    if (made.ends_with("\xef\xbf\xbe") || made.ends_with("\xef\xbf\xbf")) { made.back() = '\xbd'; }  // no characters of XML
  }
  return made;
}

class svg_writer {
public:
  svg_writer(const chart& drawn, const frame& inside, const axis& x_axis, const axis& y_axis)
      : drawn_(drawn), inside_(inside), x_axis_(x_axis), y_axis_(y_axis) {}

  std::string write() {
    add(R"(<svg xmlns="http://www.w3.org/2000/svg" width="{0}" height="{1}" viewBox="0 0 {0} {1}" font-family="Helvetica, Arial, sans-serif" font-size="12" fill="{2}">)"
        "\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
        drawn_.width, drawn_.height, ink_of_text);
    add("<text x=\"{:.1f}\" y=\"24\" font-size=\"15\" font-weight=\"bold\">{}</text>\n", inside_.left, escaped(drawn_.title));
    add_grid();
    for (std::size_t i = 0; i < drawn_.lines.size(); ++i) { add_line(drawn_.lines[i], palette[i % palette.size()]); }
    if (drawn_.lines.size() > 1) { add_legend(); }
    text_ += "</svg>\n";
    return std::move(text_);
  }

private:
  template<class... Arguments>
  void add(fmt::format_string<Arguments...> form, Arguments&&... arguments) {
    fmt::format_to(std::back_inserter(text_), form, std::forward<Arguments>(arguments)...);
  }
  [[nodiscard]] double x_at(double place) const { return inside_.left + place * inside_.width; }
  [[nodiscard]] double y_at(double place) const { return inside_.top + (1 - place) * inside_.height; }

  void add_grid() {
    const double bottom = inside_.top + inside_.height;
    for (const auto& tick : y_axis_.ticks()) {
      add("<path d=\"M{:.1f} {:.1f}h{:.1f}\" stroke=\"{}\"/>\n", inside_.left, y_at(tick.place), inside_.width, ink_of_grid);
      add("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n", inside_.left - 8, y_at(tick.place) + 4, tick.text);
    }
    for (const auto& tick : x_axis_.ticks()) {
      add("<path d=\"M{:.1f} {:.1f}v5\" stroke=\"#888\"/>\n", x_at(tick.place), bottom);
      add("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n", x_at(tick.place), bottom + 20, tick.text);
    }
    add("<path d=\"M{:.1f} {:.1f}h{:.1f}\" stroke=\"#888\"/>\n", inside_.left, bottom, inside_.width);
    add("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\" fill=\"#777\">step</text>\n", x_at(0.5), bottom + 40);
  }

  /// Adds one line. Groups of points are drawn as one vertical stroke from the least to the greatest value.
  void add_line(const series& line, std::string_view colour) {
    text_ += "<path fill=\"none\" stroke=\"";
    add("{}\" stroke-width=\"1.6\" stroke-linejoin=\"round\" d=\"", colour);
    const point_group* before = nullptr;
    for (const auto& group : line.groups()) {
      const bool goes_on = before != nullptr && before->last_x <= group.first_x;
      add("{}{:.1f} {:.1f}", goes_on ? 'L' : 'M', x_of(group.first_x), y_of(group.first));
      if (group.count > 1) { add("V{:.1f}V{:.1f}L{:.1f} {:.1f}", y_of(group.max), y_of(group.min), x_of(group.last_x), y_of(group.last)); }
      before = &group;
    }
    text_ += "\"/>\n";
    if (line.points() == 1) {
      add("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\"/>\n", x_of(before->last_x), y_of(before->last), colour);
    }
  }
  [[nodiscard]] double x_of(double x) const { return x_at(x_axis_.place_of(x)); }
  [[nodiscard]] double y_of(double y) const { return y_at(y_axis_.place_of(y)); }

  void add_legend() {
    double y = inside_.top + 14;
    double widest = 0;
    for (const auto& line : drawn_.lines) { widest = std::max(widest, static_cast<double>(columns_of(line.name())) * 7); }
    const double x = std::max(inside_.left, inside_.left + inside_.width - widest - 40);
    add("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{}\" fill=\"white\" fill-opacity=\"0.85\"/>\n", x - 6, y - 14,
        widest + 40, 18 * drawn_.lines.size() + 6);
    for (std::size_t i = 0; i < drawn_.lines.size(); ++i, y += 18) {
      add("<path d=\"M{:.1f} {:.1f}h20\" stroke=\"{}\" stroke-width=\"2.4\"/>\n", x, y - 4, palette[i % palette.size()]);
      add("<text x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", x + 26, y, escaped(drawn_.lines[i].name()));
    }
  }

  const chart& drawn_;
  const frame& inside_;
  const axis& x_axis_;
  const axis& y_axis_;
  std::string text_;
};

/// Returns a chart with at most two groups for each pixel, which is as much as a screen can show.
chart thinned(const chart& drawn) {
  auto made = drawn;
  const auto most = static_cast<std::size_t>(drawn.width) * 2;
  for (auto& line : made.lines) {
    if (line.groups().size() <= most) { continue; }
    series thin(line.name(), most);
    for (const auto& group : line.groups()) {
      thin.add(group.first_x, group.first);
      if (group.count > 1) {
        thin.add(group.first_x, group.max);
        thin.add(group.first_x, group.min);
        thin.add(group.last_x, group.last);
      }
    }
    line = std::move(thin);
  }
  return made;
}

}  // namespace

std::string svg_of(const chart& whole) {
  auto drawn = thinned(whole);
  drawn.width = std::clamp(drawn.width, 200, 20000);
  drawn.height = std::clamp(drawn.height, 150, 20000);
  const double height = drawn.height - 100.0;
  const axis y_axis(y_range(drawn.lines), static_cast<std::size_t>(height / 60) + 2, true, drawn.log_scale);
  std::size_t widest = 0;
  for (const auto& tick : y_axis.ticks()) { widest = std::max(widest, tick.text.size()); }
  const double left = 24 + 7.0 * static_cast<double>(widest);
  const frame inside{left, 44, drawn.width - left - 30, height};
  axis x_axis(x_range(drawn.lines), static_cast<std::size_t>(inside.width / (drawn.origin == 0 ? 110 : 200)) + 2, false);
  x_axis.count_from(drawn.origin);
  return svg_writer(drawn, inside, x_axis, y_axis).write();
}

std::string svg_of(const std::vector<chart>& charts) {
  if (charts.size() == 1) { return svg_of(charts.front()); }
  std::string inside;
  int width = 0;
  int height = 0;
  for (const auto& one : charts) {
    inside += fmt::format("<svg y=\"{}\"", height) + svg_of(one).substr(std::string_view("<svg").size());
    width = std::max(width, std::clamp(one.width, 200, 20000));
    height += std::clamp(one.height, 150, 20000);
  }
  return fmt::format("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\">\n{2}</svg>\n", width,
                     height, inside);
}

}  // namespace stepwell::tool
