// SPDX-License-Identifier: Apache-2.0
#include "stepwell/board/detail/live_state.hpp"

#include "stepwell/base/detail/locks.hpp"
#include "stepwell/board/detail/keep_newest.hpp"
#include "stepwell/format/detail/coding.hpp"

#include <algorithm>
#include <numeric>

namespace stepwell::board {
namespace {

constexpr std::size_t most_lines = 1000;
constexpr std::size_t longest_line = 4096;
constexpr std::size_t most_live_marks = 1000;
constexpr std::size_t most_actions = 20;
constexpr std::size_t most_live_curves = 1000;
constexpr std::size_t most_live_points = 50'000;  // of one curve
constexpr std::size_t most_traces = 4;
constexpr std::size_t most_events = 1024;

}  // namespace

double step_time::step() const {
  return std::accumulate(hooks.begin(), hooks.end(), model + data + io + other,
                         [](double sum, const auto& hook) { return sum + hook.second; });
}

void live_state::set(session_view view) {
  const stepwell::detail::mutex_lock lock(mutex_);
  view_ = std::move(view);
  ++version_;
  for (const auto& [name, value, step] : view_.watched) {
    if (!curves_.contains(name) && curves_.size() == most_live_curves) { continue; }
    auto& of = curves_[name];
    const auto points = of.points();
    if (!points.empty() && points.back().step == step) { continue; }
    of.cut(step);  // a recovery makes steps again
    of.add({step, view_.time, value});
    of.thin_out(most_live_points);
  }
}

void live_state::set_phase(std::string phase) {
  const stepwell::detail::mutex_lock lock(mutex_);
  view_.phase = std::move(phase);
  ++version_;
}

void live_state::add_mark(run_mark mark) {
  const stepwell::detail::mutex_lock lock(mutex_);
  changes_.marks.push_back(mark);
  keep_newest(changes_.marks, most_live_marks);
  marks_.push_back(std::move(mark));
  keep_newest(marks_, most_live_marks);
}

void live_state::add_log(double time, log_level level, std::string_view text) {
  const std::string line = format::to_utf8(text.substr(0, longest_line)) + (text.size() > longest_line ? "\u2026" : "");
  const stepwell::detail::mutex_lock lock(mutex_);
  log_.push_back({++lines_, time, level, line});
  keep_newest(log_, most_lines);
  changes_.lines.push_back(log_.back());
  keep_newest(changes_.lines, most_lines);
}

void live_state::each_pending(double now, const std::function<std::optional<run_metadata>(action_record&)>& act) {
  const stepwell::detail::mutex_lock lock(mutex_);
  for (auto& one : actions_) {
    if (one.state != "pending") { continue; }
    if (auto trace = act(one)) { traces_.emplace_back(one.id, std::move(*trace)); }
    keep_newest(traces_, most_traces);
    if (one.state == "pending") { continue; }
    one.finished = now;
    --pending_;
    changes_.actions.push_back(one);
  }
}

session_view live_state::view() const {
  const stepwell::detail::mutex_lock lock(mutex_);
  return view_;
}

std::uint64_t live_state::version() const {
  const stepwell::detail::mutex_lock lock(mutex_);
  return version_;
}

std::vector<run_mark> live_state::marks() const {
  const stepwell::detail::mutex_lock lock(mutex_);
  return marks_;
}

void live_state::each_curve(const std::function<void(const std::string&, const curve&)>& use) const {
  const stepwell::detail::mutex_lock lock(mutex_);
  for (const auto& [name, of] : curves_) { use(name, of); }
}

curve live_state::later_points(std::string_view name, std::optional<std::int64_t> after) const {
  const stepwell::detail::mutex_lock lock(mutex_);
  const auto found = curves_.find(name);
  if (found == curves_.end()) { return {}; }
  if (!after) { return found->second; }
  curve later;
  later.add_points_of(found->second, after);
  return later;
}

std::vector<log_line> live_state::log_after(std::uint64_t number) const {
  const stepwell::detail::mutex_lock lock(mutex_);
  const auto first = std::ranges::find_if(log_, [&](const log_line& line) { return line.number > number; });
  return {first, log_.end()};
}

std::optional<action_record> live_state::request(std::string action, std::int64_t steps, double now, std::string text) {
  const stepwell::detail::mutex_lock lock(mutex_);
  const auto is_same = [&](const action_record& one) { return one.action == action && one.state == "pending"; };
  if (std::ranges::any_of(actions_, is_same)) { return std::nullopt; }
  action_record made{.id = ++last_action_, .action = std::move(action), .requested = now, .text = std::move(text), .steps = steps};
  actions_.push_front(made);
  if (actions_.size() > most_actions) { actions_.pop_back(); }  // at most three are pending, and these are new
  ++pending_;
  changes_.actions.push_back(made);
  return made;
}

std::vector<action_record> live_state::actions() const {
  const stepwell::detail::mutex_lock lock(mutex_);
  return {actions_.begin(), actions_.end()};
}

std::optional<action_record> live_state::action(std::uint64_t id) const {
  const stepwell::detail::mutex_lock lock(mutex_);
  const auto found = std::ranges::find(actions_, id, &action_record::id);
  return found == actions_.end() ? std::nullopt : std::optional(*found);
}

std::optional<run_metadata> live_state::trace(std::uint64_t action) const {
  const stepwell::detail::mutex_lock lock(mutex_);
  const auto found = std::ranges::find(traces_, action, &std::pair<std::uint64_t, run_metadata>::first);
  return found == traces_.end() ? std::nullopt : std::optional(found->second);
}

void live_state::add_event(std::string kind, std::string data) {
  const stepwell::detail::mutex_lock lock(mutex_);
  events_.push_back({++last_event_, std::move(kind), std::move(data)});
  keep_newest(events_, most_events);
}

std::vector<live_state::event> live_state::events_after(std::uint64_t last, bool& is_skipped) const {
  const stepwell::detail::mutex_lock lock(mutex_);
  is_skipped = last > last_event_ || (!events_.empty() && last + 1 < events_.front().id);
  const auto first = std::ranges::upper_bound(events_, is_skipped ? 0 : last, {}, &event::id);
  return {first, events_.end()};
}

std::uint64_t live_state::newest_event() const {
  const stepwell::detail::mutex_lock lock(mutex_);
  return last_event_;
}

live_state::changes live_state::take_changes() {
  const stepwell::detail::mutex_lock lock(mutex_);
  return std::exchange(changes_, {});
}

}  // namespace stepwell::board
