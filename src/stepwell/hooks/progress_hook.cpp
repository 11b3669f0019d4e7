// SPDX-License-Identifier: Apache-2.0
#include "stepwell/hooks/progress_hook.hpp"

#include "stepwell/base/cadence.hpp"
#include "stepwell/hooks/detail/value_text.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <algorithm>
#include <cmath>
#include <cstdio>

namespace stepwell {
namespace {

std::string duration_text(double seconds) {
  const auto whole = static_cast<std::int64_t>(std::ceil(seconds));
  if (whole >= 3600) { return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60); }
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

std::string rate_text(double rate) { return rate >= 100 ? fmt::format("{:.0f} steps/s", rate) : fmt::format("{:.3g} steps/s", rate); }

int terminal_columns() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

std::string bar_text(double done, int width) {
  const auto filled = static_cast<int>(done * width);
  std::string bar = "[";
  for (int i = 0; i < width; ++i) { bar.push_back(i < filled ? '=' : i == filled ? '>' : ' '); }
  return bar + "] ";
}

}  // namespace

std::string progress_line(const progress_state& state, bool with_bar, int columns) {
  std::string line = fmt::format("step {}", state.step);
  double done = 0;
  if (state.last_step > 0) {
    done = std::clamp(static_cast<double>(state.step) / static_cast<double>(state.last_step), 0.0, 1.0);
    line += fmt::format("/{}  {:3.0f}%", state.last_step, std::floor(100 * done));
  }
  if (state.value) { line += "  loss " + number_text(*state.value); }
  if (state.steps_per_second > 0) {
    line += "  " + rate_text(state.steps_per_second);
    const auto left = static_cast<double>(state.last_step - state.step) / state.steps_per_second;
    if (state.last_step > state.step) { line += "  ETA " + duration_text(left); }
  }
  const int free_columns = columns - static_cast<int>(line.size()) - 4;
  if (with_bar && state.last_step > 0 && free_columns >= 8) { line = bar_text(done, std::min(free_columns, 30)) + line; }
  if (with_bar && static_cast<int>(line.size()) >= columns) { line.resize(static_cast<std::size_t>(std::max(columns - 1, 0))); }
  return line;
}

progress_printer::progress_printer(progress_options options)
    : options_(std::move(options)), is_terminal_(options_.is_terminal.value_or(isatty(STDERR_FILENO) == 1)) {
  detail::refuse_negative("last_step", options_.last_step);
  detail::refuse_negative("bar_every", options_.bar_every);
  detail::refuse_negative("line_every", options_.line_every);
  detail::refuse_negative("columns", options_.columns);
}

void progress_printer::start(std::int64_t step, const std::shared_ptr<clock>& source) {
  clock_ = source;
  started_ = source->now();
  state_ = {.first_step = step, .step = step, .last_step = options_.last_step, .value = std::nullopt};
  timer_ = second_or_step_timer({.every_secs = (is_terminal_ ? options_.bar_every : options_.line_every).duration()}, source);
  timer_.update_last_triggered_step(step);
}

void progress_printer::show(std::int64_t step, std::optional<double> value) {
  const auto elapsed = timer_.update_last_triggered_step(step);
  if (elapsed && elapsed->seconds.count() > 0) {
    const auto rate = static_cast<double>(elapsed->steps) / elapsed->seconds.count();
    state_.steps_per_second = state_.steps_per_second > 0 ? 0.7 * state_.steps_per_second + 0.3 * rate : rate;
  }
  state_.step = step;
  if (value) { state_.value = value; }
  write(false);
}

void progress_printer::finish(std::int64_t step) {
  if (!clock_ || (step == state_.first_step && !shown_)) { return; }
  if (!is_terminal_ && shown_ && step == state_.step) { return; }  // displayed already
  state_.step = step;
  const std::chrono::duration<double> elapsed = clock_->now() - started_;
  if (elapsed.count() > 0) { state_.steps_per_second = static_cast<double>(step - state_.first_step) / elapsed.count(); }
  write(true);
}

void progress_printer::write(bool is_last) {
  shown_ = true;
  const auto line = progress_line(state_, is_terminal_, options_.columns > 0 ? options_.columns : terminal_columns());
  const auto text = is_terminal_ ? "\r\x1b[K" + line + (is_last ? "\n" : "") : line + "\n";
  if (options_.output) { return options_.output(text); }
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

}  // namespace stepwell
