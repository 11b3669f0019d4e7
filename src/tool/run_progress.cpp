// SPDX-License-Identifier: Apache-2.0
#include "tool/run_progress.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>
#include <utility>
#include <variant>

namespace stepwell::tool {
namespace {

constexpr std::size_t most_groups = 2048;  // for one session

bool is_log_of(const format::event& happened, format::session_status status) noexcept {
  const auto* log = std::get_if<format::session_log>(&happened.what);
  return log != nullptr && log->status == status;
}

/// Returns true if the event proves that its step was made: it has a value other than hyper-parameters, or reports a checkpoint.
bool is_progress(const format::event& happened) {
  if (is_log_of(happened, format::session_status::checkpoint)) { return true; }
  const auto* values = std::get_if<format::summary>(&happened.what);
  return values != nullptr && std::ranges::any_of(values->values, [](const format::summary_value& value) {
           return !value.metadata || value.metadata->plugin_name != "hparams";
         });
}

/// Returns true if the step increased between two times.
bool has_rate(const series& steps) noexcept {
  if (steps.groups().empty()) { return false; }
  const auto& first = steps.groups().front();
  const auto& last = steps.groups().back();
  return last.last_x > first.first_x && last.last > first.first;
}

double begin_of(const series& steps) noexcept { return steps.groups().front().first_x; }
double seconds_of(const series& steps) noexcept { return steps.groups().back().last_x - begin_of(steps); }

/// Returns the step at a time, interpolated between known points.
double step_at(const std::vector<point_group>& known, double when) {
  const auto next = std::ranges::find_if(known, [&](const auto& group) { return group.last_x >= when; });
  if (next == known.end()) { return known.back().last; }
  const bool is_inside = next->first_x <= when || next == known.begin();
  const auto from = is_inside ? std::pair(next->first_x, next->first) : std::pair(std::prev(next)->last_x, std::prev(next)->last);
  const auto to = is_inside ? std::pair(next->last_x, next->last) : std::pair(next->first_x, next->first);
  if (!(to.first > from.first)) { return to.second; }
  return from.second + (to.second - from.second) * std::clamp((when - from.first) / (to.first - from.first), 0.0, 1.0);
}

}  // namespace

void run_progress::begin_file() { is_new_file_ = true; }

void run_progress::add(const format::event& happened) {
  const bool is_start = is_log_of(happened, format::session_status::start);
  if (std::exchange(is_new_file_, false) || is_start) {
    sessions_.push_back({happened.wall_time, is_start ? happened.step : INT64_MIN, series("step", most_groups)});
  }
  auto& now = sessions_.back();
  if (!is_progress(happened) || happened.step < now.reached) { return; }
  now.reached = happened.step;
  now.steps.add(happened.wall_time, static_cast<double>(happened.step));
}

std::vector<double> run_progress::rates(std::size_t count) const {
  std::vector<double> made;
  const double part = seconds() / static_cast<double>(count);
  if (!(part > 0)) { return made; }
  made.assign(count, 0);
  double before = 0;  // running time of earlier sessions
  for (const auto& one : sessions_) {
    if (!has_rate(one.steps)) { continue; }
    const auto& known = one.steps.groups();
    const double begin = begin_of(one.steps);
    const double end = before + seconds_of(one.steps);
    for (auto i = static_cast<std::size_t>(before / part); i < count && part * static_cast<double>(i) < end; ++i) {
      const double from = std::max(before, part * static_cast<double>(i));
      const double to = std::min(end, part * static_cast<double>(i + 1));
      if (to > from) { made[i] += std::max(0.0, step_at(known, begin + (to - before)) - step_at(known, begin + (from - before))) / part; }
    }
    before = end;
  }
  return made;
}

std::size_t run_progress::sessions() const noexcept {
  return static_cast<std::size_t>(std::ranges::count_if(sessions_, [](const auto& one) { return has_rate(one.steps); }));
}

double run_progress::seconds() const noexcept {
  double sum = 0;
  for (const auto& one : sessions_) { sum += has_rate(one.steps) ? seconds_of(one.steps) : 0; }
  return sum;
}

double run_progress::begin() const noexcept {
  const auto first = std::ranges::find_if(sessions_, [](const auto& one) { return has_rate(one.steps); });
  return begin_of(first->steps);
}

bool run_progress::has_begin_between(double from, double to) const noexcept {
  return std::ranges::any_of(sessions_, [&](const auto& one) { return one.begin > from && one.begin <= to; });
}

}  // namespace stepwell::tool
