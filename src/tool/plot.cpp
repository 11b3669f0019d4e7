// SPDX-License-Identifier: Apache-2.0
#include "tool/commands.hpp"

#include "stepwell/base/error.hpp"
#include "stepwell/io/file_system.hpp"
#include "tool/chart.hpp"
#include "tool/event_stream.hpp"
#include "tool/event_values.hpp"
#include "tool/target.hpp"

#include <fmt/format.h>
#include <fnmatch.h>
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <variant>

namespace stepwell::tool {
namespace {

constexpr std::size_t most_plotted_tags = 1000;  // of one run

using tag_set = std::set<std::string, std::less<>>;

/// The steps of a plot, as numbers that a double represents exactly.
class step_axis {
public:
  /// Returns the distance from the origin, which the first step determines.
  double x_of(std::int64_t step) {
    constexpr std::int64_t last_exact = std::int64_t{1} << 53;
    if (!origin_) { origin_ = step > last_exact || step < -last_exact ? step : 0; }
    std::int64_t distance = 0;
    return __builtin_sub_overflow(step, *origin_, &distance) ? static_cast<double>(step) - static_cast<double>(*origin_)
                                                             : static_cast<double>(distance);
  }
  [[nodiscard]] std::int64_t origin() const noexcept { return origin_.value_or(0); }

private:
  std::optional<std::int64_t> origin_;
};

/// Reads the scalars of one run.
class run_reader {
public:
  run_reader(const plot_options& options, const std::string& target, step_axis& steps, console& to)
      : options_(options), steps_(steps), to_(to) {
    for (const auto& path : require_event_files(to, target)) { read(path); }
    if (has_more_tags_) { print_error(to, fmt::format("{}: more than {} tags; choose some with --tag", target, most_plotted_tags)); }
  }

  /// Returns the lines by tag.
  [[nodiscard]] std::map<std::string, series, std::less<>>& lines() noexcept { return lines_; }
  /// Returns all tags with scalars, up to a maximum number.
  [[nodiscard]] const tag_set& scalars() const noexcept { return scalars_; }
  [[nodiscard]] exit_code how() const noexcept { return how_; }

private:
  void read(const std::string& path) {
    event_stream stream(*to_.files, path);
    how_ = worse(how_, each_event(stream, to_, [&](const format::event& happened) { take(happened); }));
  }

  void take(const format::event& happened) {
    const auto* log = std::get_if<format::session_log>(&happened.what);
    if (log != nullptr && log->status == format::session_status::start) {
      for (auto& [tag, line] : lines_) { line.cut_from(steps_.x_of(happened.step)); }
    }
    const auto* values = std::get_if<format::summary>(&happened.what);
    if (values == nullptr) { return; }
    const bool is_inside = happened.step >= options_.from_step.value_or(INT64_MIN) && happened.step <= options_.to_step.value_or(INT64_MAX);
    for (const auto& value : values->values) {
      const auto number = scalar_of(value);
      auto* const line = number ? line_of(value.tag) : nullptr;
      if (line != nullptr && is_inside) { line->add(steps_.x_of(happened.step), *number); }
    }
  }

  /// Returns the line of a tag, or null if the tag is not drawn.
  series* line_of(const std::string& tag) {
    if (const auto known = lines_.find(tag); known != lines_.end()) { return &known->second; }
    if (scalars_.contains(tag)) { return nullptr; }
    if (scalars_.size() >= most_plotted_tags) {
      has_more_tags_ = true;
      return nullptr;
    }
    scalars_.insert(tag);
    const bool is_wanted =
        options_.tags.empty() || std::ranges::any_of(options_.tags, [&](const std::string& pattern) { return matches_tag(pattern, tag); });
    if (!is_wanted) { return nullptr; }
    auto& made = lines_.emplace(tag, series()).first->second;
    if (options_.log_scale) { made.take_positive_only(); }
    return &made;
  }

  const plot_options& options_;
  step_axis& steps_;
  console& to_;
  std::map<std::string, series, std::less<>> lines_;
  tag_set scalars_;
  bool has_more_tags_ = false;
  exit_code how_ = exit_code::good;
};

std::string joined(const auto& names) {
  std::string text;
  for (const auto& name : names) { text.append(text.empty() ? "" : ", ").append(printable(name)); }
  return text;
}

/// Checks that each requested tag exists.
void check_tags(const plot_options& options, const tag_set& scalars) {
  for (const auto& pattern : options.tags) {
    if (std::ranges::any_of(scalars, [&](const auto& tag) { return matches_tag(pattern, tag); })) { continue; }
    throw not_found_error(
        fmt::format("no scalars of {}; tags with scalars: {}", printable(pattern), scalars.empty() ? "none" : joined(scalars)),
        options.targets.front());
  }
}

/// The charts to draw, and messages about lines that are left out.
struct picture {
  std::vector<chart> charts;
  std::vector<std::string> left_out;
  bool has_not_positive = false;

  /// Adds a line to a chart, or a message if it has no point.
  void add(chart& into, series line) {
    if (!line.groups().empty()) { return into.lines.push_back(std::move(line)); }
    has_not_positive = has_not_positive || line.not_positive() != 0;
    left_out.push_back(line.name() + (line.not_positive() != 0 ? ": every value is 0 or below, and the axis is logarithmic"
                                      : line.not_finite() != 0 ? ": no value is finite"
                                                               : ": no value in the chosen steps"));
  }
};

/// Returns a chart for each tag, or one for all of them, with one line for each run and tag.
picture charts_of(std::vector<std::pair<std::string, std::map<std::string, series, std::less<>>>> runs, const plot_options& options,
                  const tag_set& drawn) {
  picture made;
  const bool names_runs = runs.size() > 1;
  const bool is_one = options.together && drawn.size() > 1;
  chart all{.lines = {}, .title = options.tags.empty() ? "all scalars" : joined(options.tags), .log_scale = options.log_scale};
  for (const auto& tag : drawn) {
    chart own{.lines = {}, .title = printable(tag), .log_scale = options.log_scale};
    for (auto& [run, lines] : runs) {
      const auto found = lines.find(tag);
      if (found == lines.end()) { continue; }
      found->second.rename(!names_runs ? printable(tag) : is_one ? printable(run) + " " + printable(tag) : printable(run));
      made.add(is_one ? all : own, std::move(found->second));
    }
    if (!own.lines.empty()) { made.charts.push_back(std::move(own)); }
  }
  if (!all.lines.empty()) { made.charts.push_back(std::move(all)); }
  return made;
}

void throw_nothing_to_draw(const picture& made, const plot_options& options, const tag_set& scalars) {
  if (made.has_not_positive) {
    throw invalid_argument_error(fmt::format("every value of {} is 0 or below and cannot be drawn on a logarithmic axis; leave out --log",
                                             options.tags.empty() ? "all scalars" : joined(options.tags)),
                                 options.targets.front());
  }
  throw not_found_error(fmt::format("no finite scalars to draw; tags with scalars: {}", scalars.empty() ? "none" : joined(scalars)),
                        options.targets.front());
}

}  // namespace

bool matches_tag(const std::string& pattern, const std::string& tag) {
  return pattern == tag || ::fnmatch(pattern.c_str(), tag.c_str(), FNM_NOESCAPE) == 0;
}

exit_code plot(const plot_options& options, console& to) {
  to.ascii = to.ascii || options.ascii;
  step_axis steps;
  std::vector<std::pair<std::string, std::map<std::string, series, std::less<>>>> runs;
  tag_set scalars;
  tag_set drawn;
  exit_code how = exit_code::good;
  for (const auto& target : options.targets) {
    run_reader reader(options, target, steps, to);
    scalars.insert(reader.scalars().begin(), reader.scalars().end());
    for (const auto& [tag, line] : reader.lines()) { drawn.insert(tag); }
    how = worse(how, reader.how());
    runs.emplace_back(target, std::move(reader.lines()));
  }
  check_tags(options, scalars);
  auto made = charts_of(std::move(runs), options, drawn);
  if (made.charts.empty()) { throw_nothing_to_draw(made, options, scalars); }
  const bool is_several = made.charts.size() > 1;
  for (auto& one : made.charts) {
    one.origin = steps.origin();
    one.width = options.width != 0 ? options.width : to.width;
    one.height = options.height != 0 ? options.height : is_several ? 10 : 20;
  }
  for (const auto& one : made.charts) { draw_in_terminal(one, to); }
  for (const auto& message : made.left_out) { to.out << "  not drawn: " << printable(to, message) << '\n'; }
  return how;
}

}  // namespace stepwell::tool
