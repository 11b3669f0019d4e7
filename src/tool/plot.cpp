// SPDX-License-Identifier: Apache-2.0
#include "tool/commands.hpp"

#include "stepwell/base/error.hpp"
#include "stepwell/io/atomic_file.hpp"
#include "stepwell/io/file_system.hpp"
#include "tool/chart.hpp"
#include "tool/event_stream.hpp"
#include "tool/event_values.hpp"
#include "tool/target.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <set>
#include <variant>

namespace stepwell::tool {
namespace {

/// Reads the lines of one target.
class line_reader {
public:
  line_reader(const plot_options& options, const std::string& target, console& to) : options_(options), to_(to) {
    const bool names_targets = options.targets.size() > 1;
    for (const auto& tag : options.tags) {
      lines_.emplace_back(!names_targets             ? printable(tag)
                          : options.tags.size() == 1 ? printable(target)
                                                     : printable(target) + " " + printable(tag));
      if (options.log_scale) { lines_.back().take_positive_only(); }
    }
    for (const auto& path : require_event_files(to, target)) { read(path); }
  }

  [[nodiscard]] std::vector<series>& lines() noexcept { return lines_; }
  [[nodiscard]] const std::set<std::string>& scalars() const noexcept { return scalars_; }
  [[nodiscard]] exit_code how() const noexcept { return how_; }

private:
  void read(const std::string& path) {
    event_stream stream(*to_.files, path);
    how_ = worse(how_, each_event(stream, to_, [&](const format::event& happened) { take(happened); }));
  }

  void take(const format::event& happened) {
    const auto* log = std::get_if<format::session_log>(&happened.what);
    if (log != nullptr && log->status == format::session_status::start) {
      for (auto& line : lines_) { line.cut_from(static_cast<double>(happened.step)); }
    }
    const auto* values = std::get_if<format::summary>(&happened.what);
    if (values == nullptr) { return; }
    for (const auto& value : values->values) {
      const auto number = scalar_of(value);
      if (!number) { continue; }
      if (scalars_.size() < 1000) { scalars_.insert(value.tag); }
      const auto tag = std::ranges::find(options_.tags, value.tag);
      const bool is_inside =
          happened.step >= options_.from_step.value_or(INT64_MIN) && happened.step <= options_.to_step.value_or(INT64_MAX);
      if (tag != options_.tags.end() && is_inside) {
        lines_[static_cast<std::size_t>(tag - options_.tags.begin())].add(static_cast<double>(happened.step), *number);
      }
    }
  }

  const plot_options& options_;
  console& to_;
  std::vector<series> lines_;
  std::set<std::string> scalars_;
  exit_code how_ = exit_code::good;
};

std::string joined(const auto& names) {
  std::string text;
  for (const auto& name : names) { text.append(text.empty() ? "" : ", ").append(printable(name)); }
  return text;
}

void check_drawable(const std::vector<series>& lines, const plot_options& options, const std::set<std::string>& scalars) {
  const bool is_empty = std::ranges::all_of(lines, [](const auto& line) { return line.groups().empty(); });
  const bool has_other = std::ranges::any_of(lines, [](const auto& line) { return line.not_positive() != 0; });
  if (is_empty && has_other) {
    throw invalid_argument_error(
        fmt::format("every value of {} is 0 or below and cannot be drawn on a logarithmic axis; leave out --log", joined(options.tags)),
        options.targets.front());
  }
  if (is_empty) {
    throw not_found_error(fmt::format("no finite scalars of {} to draw; tags with scalars: {}", joined(options.tags),
                                      scalars.empty() ? "none" : joined(scalars)),
                          options.targets.front());
  }
}

}  // namespace

exit_code plot(const plot_options& options, console& to) {
  const bool is_svg = !options.svg.empty();
  chart drawn{.lines = {}, .title = joined(options.tags), .log_scale = options.log_scale};
  std::set<std::string> scalars;
  exit_code how = exit_code::good;
  for (const auto& target : options.targets) {
    line_reader reader(options, target, to);
    std::ranges::move(reader.lines(), std::back_inserter(drawn.lines));
    scalars.insert(reader.scalars().begin(), reader.scalars().end());
    how = worse(how, reader.how());
  }
  check_drawable(drawn.lines, options, scalars);
  drawn.width = options.width != 0 ? options.width : is_svg ? 860 : to.width;
  drawn.height = options.height != 0 ? options.height : is_svg ? 480 : 20;
  if (is_svg) {
    value_or_throw(io::write_file_atomically(*to.files, options.svg, svg_of(drawn)));
    to.out << "wrote " << printable(options.svg) << '\n';
    for (const auto& line : drawn.lines) {
      if (const auto missing = left_out_text(line); !missing.empty()) { to.out << "  " << line.name() << missing << '\n'; }
    }
  } else {
    draw_in_terminal(drawn, options.ascii, to);
  }
  return how;
}

}  // namespace stepwell::tool
