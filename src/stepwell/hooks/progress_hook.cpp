// SPDX-License-Identifier: Apache-2.0
#include "stepwell/hooks/progress_hook.hpp"

#include "stepwell/base/detail/printable.hpp"
#include "stepwell/base/detail/status_region.hpp"
#include "stepwell/hooks/detail/value_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <utility>

namespace stepwell {
namespace {

/// The name of the note with the path of the newest checkpoint. Only the summary has it.
constexpr std::string_view checkpoint_note = "checkpoint";

// ---- the terminal

std::string_view environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

bool is_terminal() { return isatty(STDERR_FILENO) == 1 && environment("TERM") != "dumb"; }

/// Returns true if the locale of the environment has UTF-8.
bool has_utf8() {
  for (const auto* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    std::string locale(environment(name));
    if (locale.empty()) { continue; }
    std::ranges::transform(locale, locale.begin(), [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
    return locale.find("utf-8") != std::string::npos || locale.find("utf8") != std::string::npos;
  }
  return false;
}

int terminal_columns() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

// ---- texts

/// Returns the number of code points, which is the number of columns except for wide and combining characters.
int columns_of(std::string_view text) {
  return static_cast<int>(std::ranges::count_if(text, [](char letter) { return (static_cast<unsigned char>(letter) & 0xc0) != 0x80; }));
}

/// Returns at most `columns` code points of `text`.
std::string cut(std::string_view text, int columns) {
  std::size_t end = 0;
  for (; end < text.size(); ++end) {
    if ((static_cast<unsigned char>(text[end]) & 0xc0) != 0x80 && columns-- <= 0) { break; }
  }
  return std::string(text.substr(0, end));
}

std::string padded(std::string text, int columns) {
  text.append(static_cast<std::size_t>(std::max(0, columns - columns_of(text))), ' ');
  return text;
}

std::string duration_text(double seconds) {
  const auto whole = static_cast<std::int64_t>(std::clamp(seconds, 0.0, 3.5e9));
  if (whole >= 360'000) { return fmt::format("{}d {:02}h", whole / 86'400, whole / 3600 % 24); }  // at most seven characters up to 999 days
  if (whole >= 3600) { return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60); }
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

std::string rate_text(double rate) { return rate >= 100 ? fmt::format("{:.0f}", rate) : fmt::format("{:.3g}", rate); }

/// Returns at most five characters: "0.123", "12.3", "410", "52.5k", "1.2M".
std::string short_rate_text(double rate) {
  if (rate >= 99.95e9) { return "many"; }
  constexpr std::pair<double, char> units[] = {{1e9, 'G'}, {1e6, 'M'}, {1e3, 'k'}};
  for (const auto& [size, unit] : units) {
    if (rate >= size * 0.99995) { return fmt::format("{:.{}f}{}", rate / size, rate >= size * 99.95 ? 0 : 1, unit); }
  }
  return rate >= 99.95 ? fmt::format("{:.0f}", rate) : rate >= 9.995 ? fmt::format("{:.1f}", rate) : fmt::format("{:.2f}", rate);
}

constexpr int value_columns = 8;

/// Returns at most eight characters. Values of similar size have the same number of decimals.
std::string fixed_value_text(double value) {
  const double size = std::abs(value);
  if (!std::isfinite(value)) { return std::isnan(value) ? "nan" : value < 0 ? "-inf" : "inf"; }
  if (size == 0) { return "0.0000"; }
  if (size < 1e-3 || size >= 99'999.5) {
    const bool is_wide = value < 0 || size >= 9.995e99 || size < 9.995e-100;
    return fmt::format("{:.{}e}", value, is_wide ? 1 : 2);
  }
  return fmt::format("{:.{}f}", value, size < 9.99995 ? 4 : size < 99.9995 ? 3 : size < 999.995 ? 2 : 1);
}

double fraction_done(const progress_state& state) {
  return std::clamp(static_cast<double>(state.step) / static_cast<double>(state.last_step), 0.0, 1.0);
}

/// Returns the expected time to the last step. Empty if it is unknown.
std::optional<double> seconds_left(const progress_state& state) {
  if (state.steps_per_second <= 0 || state.last_step <= state.step) { return std::nullopt; }
  return static_cast<double>(state.last_step - state.step) / state.steps_per_second;
}

// ---- the line of a terminal

enum class style { plain, strong, faint, accent };

struct segment {
  std::string text;
  style look = style::plain;
};

/// A part of the line. Fields with a smaller `rank` are more important: each field is shown if there is space after more important ones.
struct field {
  int rank = 0;
  std::vector<segment> segments = {};

  [[nodiscard]] int columns() const {
    int sum = 0;
    for (const auto& part : segments) { sum += columns_of(part.text); }
    return sum;
  }
};

constexpr int bar_rank = 6;
constexpr int elapsed_rank = 7;
constexpr int least_important = 9;
constexpr int least_bar = 10;
constexpr int greatest_bar = 30;
constexpr std::string_view gap = "  ";
constexpr int gap_columns = static_cast<int>(gap.size());
constexpr int note_columns = 16;   // kept free for a note such as "saved 12000" by the fields that are less important than the elapsed time
constexpr int usual_columns = 80;  // a narrower terminal keeps nothing free

field bar_field(const progress_state& state, int columns, bool unicode) {
  const auto filled = static_cast<int>(fraction_done(state) * columns);
  std::string done;
  std::string rest;
  for (int i = 0; i < columns; ++i) {
    if (unicode) {
      (i < filled ? done : rest) += "━";
    } else if (i < filled) {
      done += '=';
    } else {
      rest += i == filled ? '>' : ' ';
    }
  }
  if (unicode) { return {bar_rank, {{done, style::accent}, {rest, style::faint}}}; }
  return {bar_rank, {{"[" + done + rest + "]"}}};
}

field step_field(const progress_state& state) {
  if (state.last_step <= 0) { return {0, {{"step "}, {fmt::format("{:>6}", state.step), style::strong}}}; }
  const auto last = std::to_string(state.last_step);
  return {0, {{"step "}, {fmt::format("{:>{}}", state.step, last.size()), style::strong}, {"/" + last}}};
}

field epoch_field(const progress_state& state) {
  const auto epoch = state.epoch->epoch + 1;
  if (state.last_epoch <= 0) { return {5, {{fmt::format("epoch {:>3}", epoch)}}}; }
  const auto last = std::to_string(state.last_epoch);
  return {5, {{fmt::format("epoch {:>{}}/{}", epoch, last.size(), last)}}};
}

field value_field(const progress_value& value, bool is_first) {
  const auto text = value.value ? fixed_value_text(*value.value) : "-";
  return {is_first ? 1 : 3, {{detail::printable(value.name) + " "}, {padded(text, value_columns), style::strong}}};
}

/// Returns the fields that are in every line of a session. Their widths do not change.
std::vector<field> steady_fields(const progress_state& state) {
  std::vector<field> all;
  if (!state.session.empty()) { all.push_back({9, {{detail::printable(state.session), style::faint}}}); }
  if (state.epoch) { all.push_back(epoch_field(state)); }
  all.push_back(step_field(state));
  if (state.last_step > 0) { all.push_back({2, {{fmt::format("{:3.0f}%", std::floor(100 * fraction_done(state)))}}}); }
  for (const auto& value : state.values) { all.push_back(value_field(value, &value == &state.values.front())); }
  const auto rate = [](double per_second) { return per_second > 0 ? short_rate_text(per_second) : std::string("-"); };
  all.push_back({4, {{fmt::format("{:>5} steps/s", rate(state.steps_per_second)), style::faint}}});
  if (state.batch_size > 0) {
    const auto samples = state.steps_per_second * static_cast<double>(state.batch_size);
    all.push_back({8, {{fmt::format("{:>5} samples/s", rate(samples)), style::faint}}});
  }
  all.push_back({elapsed_rank, {{fmt::format("{:>7}", duration_text(state.elapsed.count())), style::faint}}});
  if (state.last_step > 0) {
    const auto left = seconds_left(state);
    const bool is_done = state.has_ended || state.step >= state.last_step;
    all.push_back({2, {{padded(is_done ? "" : "ETA " + (left ? duration_text(std::ceil(*left)) : std::string("-")), 11)}}});
  }
  return all;
}

int columns_of(const std::vector<field>& fields) {
  int sum = 0;
  for (const auto& next_field : fields) { sum += next_field.columns() + (sum == 0 ? 0 : gap_columns); }
  return sum;
}

std::string painted(const segment& part, bool colours) {
  constexpr std::array<std::string_view, 4> codes = {"", "\x1b[1m", "\x1b[2m", "\x1b[36m"};
  const auto code = codes[static_cast<std::size_t>(part.look)];
  if (!colours || code.empty() || part.text.empty()) { return part.text; }
  return std::string(code) + part.text + "\x1b[0m";
}

std::string terminal_line(const progress_state& state, const progress_style& line_style) {
  const int most = std::max(line_style.columns - 1, 1);  // the last column stays empty: some terminals wrap after it
  const int frame = line_style.unicode ? 0 : 2;          // brackets around the bar
  const int for_notes = line_style.columns >= usual_columns ? note_columns : 0;
  auto fields = steady_fields(state);
  int used = 0;
  const auto accept = [&](int columns, int limit) {
    const int more = columns + (used == 0 ? 0 : gap_columns);
    if (used != 0 && used + more > limit) { return false; }
    used += more;
    return true;
  };
  std::vector<bool> is_shown(fields.size());
  bool has_bar = false;
  for (int rank = 0; rank <= least_important; ++rank) {  // the widths do not change, so the choice does not change either
    if (rank == bar_rank && state.last_step > 0) { has_bar = accept(least_bar + frame, most); }
    for (std::size_t i = 0; i < fields.size(); ++i) {
      if (fields[i].rank == rank) { is_shown[i] = accept(fields[i].columns(), rank > elapsed_rank ? most - for_notes : most); }
    }
  }
  std::size_t kept = 0;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (is_shown[i]) { std::swap(fields[kept++], fields[i]); }
  }
  fields.resize(kept);
  if (has_bar) {
    const int free_columns = most - used - for_notes;
    fields.insert(fields.begin(), bar_field(state, std::clamp(least_bar + free_columns / 3, least_bar, greatest_bar), line_style.unicode));
  }
  for (const auto& [name, text] : state.notes) {
    field note{least_important, {{detail::printable(name) + " " + padded(detail::printable(text), value_columns), style::faint}}};
    if (columns_of(fields) + gap_columns + note.columns() > most) { continue; }
    fields.push_back(std::move(note));
  }
  std::string line;
  int left = most;
  for (const auto& next_field : fields) {
    if (!line.empty()) { line += gap, left -= gap_columns; }
    for (const auto& part : next_field.segments) {
      line += painted({cut(part.text, left), part.look}, line_style.colours);
      left = std::max(0, left - columns_of(part.text));
    }
  }
  return line;
}

// ---- the plain line

std::string plain_line(const progress_state& state) {
  std::string line;
  const auto add = [&](const std::string& text) { line.append(line.empty() ? "" : gap).append(text); };
  if (!state.session.empty()) { add(fmt::format("[{}]", detail::printable(state.session))); }
  if (state.epoch) {
    add(state.last_epoch > 0 ? fmt::format("epoch {}/{}", state.epoch->epoch + 1, state.last_epoch)
                             : fmt::format("epoch {}", state.epoch->epoch + 1));
  }
  add(fmt::format("step {}", state.step));
  if (state.last_step > 0) { line += fmt::format("/{}  {:3.0f}%", state.last_step, std::floor(100 * fraction_done(state))); }
  for (const auto& metric : state.values) {
    if (metric.value) { add(detail::printable(metric.name) + " " + number_text(*metric.value)); }
  }
  if (state.steps_per_second > 0) {
    add(rate_text(state.steps_per_second) + " steps/s");
    if (state.batch_size > 0) { add(rate_text(state.steps_per_second * static_cast<double>(state.batch_size)) + " samples/s"); }
  }
  add(duration_text(state.elapsed.count()));
  if (const auto left = seconds_left(state); left && !state.has_ended) { add("ETA " + duration_text(std::ceil(*left))); }
  for (const auto& [name, text] : state.notes) { add(detail::printable(name) + " " + detail::printable(text)); }
  return line;
}

progress_style style_of(const progress_options& options) {
  progress_style style;
  style.is_terminal = options.is_terminal.value_or(is_terminal());
  style.colours = options.colours.value_or(style.is_terminal && environment("NO_COLOR").empty());
  style.unicode = options.unicode.value_or(has_utf8());
  return style;
}

}  // namespace

std::string progress_line(const progress_state& state, const progress_style& style) {
  return style.is_terminal ? terminal_line(state, style) : plain_line(state);
}

std::string progress_summary(const progress_state& state, const run_ending& ending) {
  std::string line = state.session.empty() ? "" : fmt::format("[{}]  ", detail::printable(state.session));
  line += fmt::format("{} at step {}", to_string(ending.how), state.step);
  if (ending.why.cause != stop_cause::closed && !ending.why.text.empty()) {
    line += fmt::format(" ({})", detail::printable(ending.why.text));
  }
  line += fmt::format(": {} steps in {}", state.step - state.first_step, duration_text(state.elapsed.count()));
  const auto add = [&](const std::string& name, const std::string& text) {
    line += fmt::format(", {} {}", detail::printable(name), detail::printable(text));
  };
  for (const auto& metric : state.values) {
    if (metric.value) { add(metric.name, number_text(*metric.value)); }
  }
  for (const auto& [name, text] : state.notes) { add(name, text); }
  return line;
}

progress_printer::progress_printer(progress_options options, std::vector<std::string> names)
    : options_(std::move(options)), style_(style_of(options_)) {
  detail::refuse_negative("last_step", options_.last_step);
  detail::refuse_negative("last_epoch", options_.last_epoch);
  detail::refuse_negative("batch_size", options_.batch_size);
  detail::refuse_negative("bar_every", options_.bar_every);
  detail::refuse_negative("line_every", options_.line_every);
  detail::refuse_negative("columns", options_.columns);
  region_ = options_.output ? std::make_shared<detail::status_region>(options_.output) : detail::status_region::of_stderr();
  for (auto& name : names) { state_.values.push_back({std::move(name)}); }
}

progress_printer::progress_printer(progress_printer&&) noexcept = default;
progress_printer::~progress_printer() = default;

void progress_printer::start(const session_requests& session, std::int64_t step) {
  clock_ = session.time();
  state_.session = session.name();
  if (!std::exchange(has_started_, true)) {
    started_ = clock_->now();
    state_.first_step = step;
  }
  state_.first_step = std::min(state_.first_step, step);
  state_.step = step;
  state_.last_step = options_.last_step;
  state_.last_epoch = options_.last_epoch;
  state_.batch_size = options_.batch_size;
  state_.steps_per_second = 0;
  state_.epoch.reset();
  state_.has_ended = is_written_ = false;
  for (auto& metric : state_.values) { metric.value.reset(); }  // after a recovery, the values of the failed run
  values_step_ = -1;
  epoch_line_.reset();
  timer_ = second_or_step_timer({.every_secs = (style_.is_terminal ? options_.bar_every : options_.line_every).duration()}, clock_);
  timer_.update_last_triggered_step(step);
}

std::vector<std::string> progress_printer::names() const {
  std::vector<std::string> all;
  for (const auto& metric : state_.values) { all.push_back(metric.name); }
  return all;
}

void progress_printer::measure(const session_requests& session, std::int64_t step) {
  state_.step = step;
  state_.elapsed = clock_->now() - started_;
  state_.notes = session.shown();
  if (const auto epoch = session.epoch()) { state_.epoch = epoch; }
}

void progress_printer::show(const session_requests& session, std::int64_t step, const std::vector<std::optional<double>>& values) {
  const auto elapsed = timer_.update_last_triggered_step(step);
  if (elapsed && elapsed->seconds.count() > 0) {
    const auto rate = static_cast<double>(elapsed->steps) / elapsed->seconds.count();
    state_.steps_per_second = state_.steps_per_second > 0 ? 0.7 * state_.steps_per_second + 0.3 * rate : rate;
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i]) { state_.values[i].value = values[i]; }
  }
  values_step_ = step;
  measure(session, step);
  is_written_ = false;
  const auto epoch = session.epoch();
  if (epoch && epoch->is_last && options_.epoch_lines) { epoch_line_ = state_; }
  const bool is_last = step == options_.last_step || session.last_step() == step;
  if (style_.is_terminal || (!is_last && !epoch_line_)) { write(); }  // the plain line of the last step is the final one
}

void progress_printer::write_epoch(const session_requests& session, const std::vector<std::optional<double>>& newest) {
  for (std::size_t i = 0; i < newest.size(); ++i) {
    if (newest[i]) { epoch_line_->values[i].value = newest[i]; }
  }
  epoch_line_->notes = session.shown();
  region_->print(plain_line(*epoch_line_) + "\n");
  epoch_line_.reset();
}

/// Writes the final line after the last checkpoint has become durable.
class progress_printer::ending final : public boundary_work {
public:
  ending(progress_printer& printer, const session_requests& session, std::int64_t step, std::vector<std::optional<double>> at_end)
      : printer_(printer), session_(session), step_(step), at_end_(std::move(at_end)) {}
  void write_ending(const run_ending& ending) override { printer_.write_final(session_, ending, step_, at_end_); }

private:
  progress_printer& printer_;
  session_requests session_;
  std::int64_t step_;
  std::vector<std::optional<double>> at_end_;
};

void progress_printer::finish(const session_requests& session, std::int64_t step, std::vector<std::optional<double>> at_end) {
  if (!clock_ || (step == state_.first_step && !line_)) { return; }
  session.add_work(std::make_shared<ending>(*this, session, step, std::move(at_end)));
}

void progress_printer::write_final(const session_requests& session, const run_ending& ending, std::int64_t step,
                                   const std::vector<std::optional<double>>& at_end) {
  state_.has_ended = true;
  const bool is_of_last_step = step == state_.step;
  if (!is_of_last_step) { state_.epoch.reset(); }
  std::vector<std::string> earlier;  // names of the values of an earlier step
  for (std::size_t i = 0; i < state_.values.size(); ++i) {
    auto& [name, value] = state_.values[i];
    const auto newest = i < at_end.size() ? at_end[i] : std::nullopt;
    if (newest) { value = newest; }
    if (!newest && value && values_step_ != step) { earlier.push_back(name); }
  }
  measure(session, step);
  if (state_.elapsed.count() > 0) { state_.steps_per_second = static_cast<double>(step - state_.first_step) / state_.elapsed.count(); }
  if (!earlier.empty()) {
    state_.notes.emplace(state_.notes.begin(), fmt::format("{} of step", fmt::join(earlier, ", ")), std::to_string(values_step_));
  }
  const auto summary = progress_summary(state_, ending);
  std::erase_if(state_.notes, [](const auto& note) { return note.first == checkpoint_note; });
  if (style_.is_terminal || !is_written_ || !is_of_last_step) { write(); }  // otherwise displayed already
  interrupt();
  if (options_.summary) { region_->print(summary + "\n"); }
}

void progress_printer::interrupt() { line_.reset(); }

void progress_printer::print(std::string_view text) {
  if (!options_.output) { return print_line(text); }
  region_->print(std::string(text) + "\n");
}

void progress_printer::write() {
  is_written_ = true;
  style_.columns = options_.columns > 0 ? options_.columns : terminal_columns();
  auto text = progress_line(state_, style_);
  if (!style_.is_terminal) { return region_->print(text + "\n"); }
  if (!line_) { line_ = std::make_unique<detail::status_line>(region_); }
  line_->set(std::move(text));
}

}  // namespace stepwell
