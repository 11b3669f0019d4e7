// SPDX-License-Identifier: Apache-2.0
//
// `stepwell stats`: the state of a run, and its speed over time.
#include "tool/commands.hpp"

#include "stepwell/base/clock.hpp"
#include "stepwell/base/error.hpp"
#include "stepwell/checkpoint/detail/checkpoint_directory.hpp"
#include "stepwell/checkpoint/find_checkpoints.hpp"
#include "stepwell/format/checkpoint/detail/bundle.hpp"
#include "stepwell/io/file_system.hpp"
#include "stepwell/protocol/run_ending.hpp"
#include "tool/chart.hpp"
#include "tool/event_stream.hpp"
#include "tool/json.hpp"
#include "tool/target.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <iterator>
#include <optional>
#include <ranges>
#include <utility>
#include <variant>

namespace stepwell::tool {
namespace {

constexpr std::size_t bars = 40;
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

/// The steps of a run over time, for each session. A session begins with an event file, or with a START event in it. The time between
/// sessions is not counted.
class run_progress {
  struct session {
    double begin = 0;          // time of its first event
    std::int64_t reached = 0;  // greatest step so far, initially the step of the START event
    series steps;              // over seconds since 1970
  };

  /// Returns the steps of the sessions that have a rate.
  [[nodiscard]] auto rated() const { return sessions_ | std::views::transform(&session::steps) | std::views::filter(has_rate); }

public:
  void begin_file() { is_new_file_ = true; }

  /// Adds an event. A value or a checkpoint counts as progress if no earlier event of the session had this step or a greater one: the rate
  /// is not that of a wait after the last step. Hyper-parameters do not count, and neither do values that a resumed session writes at step 0.
  void add(const format::event& happened) {
    const bool is_start = is_log_of(happened, format::session_status::start);
    if (is_start && last_step_ && *last_step_ >= happened.step) { last_step_ = happened.step - 1; }  // the run made these steps again
    if (std::exchange(is_new_file_, false) || is_start) {
      sessions_.push_back({happened.wall_time, is_start ? happened.step : INT64_MIN, series("step", most_groups)});
    }
    auto& now = sessions_.back();
    if (!is_progress(happened) || happened.step < now.reached) { return; }
    const bool is_repeated = happened.step == now.reached && !now.steps.groups().empty();
    now.reached = happened.step;
    last_step_ = std::max(last_step_.value_or(happened.step), happened.step);
    if (is_repeated) { return; }
    now.steps.add(happened.wall_time, static_cast<double>(happened.step));
  }

  /// Returns steps per second in `count` equal parts of the running time. Empty if no session has progress at two different times.
  [[nodiscard]] std::vector<double> rates(std::size_t count) const {
    std::vector<double> made;
    const double part = seconds() / static_cast<double>(count);
    if (!(part > 0)) { return made; }
    made.assign(count, 0);
    double before = 0;  // running time of earlier sessions
    for (const auto& steps : rated()) {
      const auto& known = steps.groups();
      const double end = before + seconds_of(steps);
      for (auto i = static_cast<std::size_t>(before / part); i < count && part * static_cast<double>(i) < end; ++i) {
        const double from = std::max(before, part * static_cast<double>(i));
        const double to = std::min(end, part * static_cast<double>(i + 1));
        if (to <= from) { continue; }
        made[i] +=
            std::max(0.0, step_at(known, begin_of(steps) + (to - before)) - step_at(known, begin_of(steps) + (from - before))) / part;
      }
      before = end;
    }
    return made;
  }
  /// Returns the last step that was made and not rolled back, as far as events show it.
  [[nodiscard]] std::optional<std::int64_t> last_step() const noexcept { return last_step_; }
  /// Returns the begin of the last session, in seconds since 1970. Empty if there are no events.
  [[nodiscard]] std::optional<double> last_begin() const noexcept {
    return sessions_.empty() ? std::nullopt : std::optional(sessions_.back().begin);
  }
  /// Returns the number of sessions that have a rate.
  [[nodiscard]] std::size_t sessions() const { return static_cast<std::size_t>(std::ranges::distance(rated())); }
  /// Returns the total running time of these sessions in seconds.
  [[nodiscard]] double seconds() const {
    double sum = 0;
    for (const auto& steps : rated()) { sum += seconds_of(steps); }
    return sum;
  }
  /// Returns the begin of the first of these sessions, in seconds since 1970.
  /// @pre `sessions() != 0`.
  [[nodiscard]] double begin() const { return begin_of(*rated().begin()); }
  /// Returns true if a session began after `from` and not after `to`.
  [[nodiscard]] bool has_begin_between(double from, double to) const noexcept {
    return std::ranges::any_of(sessions_, [&](const session& one) { return one.begin > from && one.begin <= to; });
  }

private:
  std::vector<session> sessions_;
  std::optional<std::int64_t> last_step_;
  bool is_new_file_ = true;  // true if the next event begins a session
};

struct checkpoint_line {
  std::string prefix;
  std::optional<std::int64_t> step;
  double time = 0;
  std::uint64_t bytes = 0;
};
struct event_line {
  std::string path;
  std::uint64_t records = 0;
  std::uint64_t bytes = 0;
  std::optional<std::int64_t> last_step = {};
};

/// The collected facts about a run.
struct run_facts {
  std::vector<checkpoint_line> checkpoints = {};
  std::optional<std::string> newest_checkpoint = {};  ///< The checkpoint from which training continues.
  std::vector<event_line> event_files = {};
  run_progress progress = {};
  std::optional<run_ending> ending = {};  ///< Empty while a session runs, and after a kill.
  std::optional<lock_holder> holder = {};
  std::string group = {};         ///< The description of the last generation of a group. Empty if the run has no group.
  std::uint64_t generations = 0;  ///< The number of generations that the event files show.
  std::uint64_t bytes = 0;
  std::uint64_t files = 0;
  exit_code how = exit_code::good;

  /// Returns the last step of the run. A checkpoint counts if it is from the last session: an earlier one may be of a step that was made
  /// again.
  [[nodiscard]] std::optional<std::int64_t> last_step() const {
    auto last = progress.last_step();
    const auto begin = last ? progress.last_begin() : std::nullopt;
    for (const auto& one : checkpoints) {
      const bool counts = one.step && (!begin || one.time >= *begin);
      if (counts) { last = std::max(last.value_or(*one.step), *one.step); }
    }
    return last;
  }
};

/// Adds the files below a directory. `directory` is a canonical path. Links are not followed, as by `du`.
void add_usage(const console& to, const std::string& directory, run_facts& facts) {
  auto names = to.files->list(directory);
  if (!names && names.error().code == errc::not_found) { return; }  // deleted in the meantime
  for (const auto& name : value_or_throw(std::move(names))) {
    const auto path = io::join_path(directory, name);
    const auto info = is_no_link(to, directory, name) ? to.files->stat(path) : status(errc::not_found, "a link, or deleted", path);
    if (info && info->is_directory) {
      add_usage(to, path, facts);
    } else if (info) {
      facts.bytes += info->size;
      ++facts.files;
    }
  }
}

void add_checkpoints(const console& to, const std::string& directory, run_facts& facts) {
  for (auto& one : stepwell::detail::find_checkpoint_files(*to.files, directory)) {
    const auto step = step_of_checkpoint(one.prefix);
    facts.checkpoints.push_back({std::move(one.prefix), step, stepwell::detail::wall_seconds(one.written), one.size_bytes});
  }
  facts.newest_checkpoint = newest_checkpoint(to, directory);
}

/// Adds the generation of a group, which rank 0 writes after each formation.
void add_generation(const format::event& happened, run_facts& facts) {
  const auto* const log = std::get_if<format::session_log>(&happened.what);
  if (log == nullptr || log->status != format::session_status::unspecified || !log->message.starts_with("generation ")) { return; }
  facts.group = log->message;
  ++facts.generations;
}

void add_event_file(console& to, const std::string& path, run_facts& facts) {
  event_stream stream(*to.files, path);
  event_line line{.path = path};
  facts.progress.begin_file();
  const auto how = each_event(stream, to, [&](const format::event& happened) {
    facts.progress.add(happened);
    add_generation(happened, facts);
    const bool is_value = std::holds_alternative<format::summary>(happened.what);  // a START event contains a step that is not done yet
    if (is_value) { line.last_step = std::max(line.last_step.value_or(happened.step), happened.step); }
  });
  facts.how = worse(facts.how, how);
  line.records = stream.records();
  line.bytes = stream.bytes();
  facts.event_files.push_back(std::move(line));
}

/// Adds the end of the last session. A damaged file of it is reported, and does not hide the other facts.
void add_ending(console& to, const std::string& directory, run_facts& facts) {
  try {
    facts.ending = run_ended(*to.files, directory);
    if (!facts.ending) { facts.holder = holder_of(to, directory); }
  } catch (const error& damage) {
    print_error(to, damage.what());
    facts.how = worse(facts.how, exit_code::damaged);
  }
}

std::uint64_t bytes_of(const auto& lines) {
  std::uint64_t sum = 0;
  for (const auto& line : lines) { sum += line.bytes; }
  return sum;
}

void print_checkpoints(const run_facts& facts, console& to) {
  text_table table({"CHECKPOINT", ">STEP", "WRITTEN (UTC)", ">SIZE", ">STEPS/S"});
  const checkpoint_line* before = nullptr;
  for (const auto& one : facts.checkpoints) {
    const bool has_rate = before != nullptr && one.step && before->step && one.time > before->time &&
                          !facts.progress.has_begin_between(before->time, one.time);
    table.add({{printable(to, io::base_name(one.prefix)), ink::cyan},
               one.step ? std::to_string(*one.step) : "-",
               time_text(one.time),
               size_text(one.bytes),
               has_rate ? number_text(static_cast<double>(*one.step - *before->step) / (one.time - before->time)) : "-"});
    before = &one;
  }
  if (!table.empty()) {
    to.out << '\n';
    table.print(to);
  }
  if (facts.newest_checkpoint) { to.out << "newest: " << printable(to, io::base_name(*facts.newest_checkpoint)) << '\n'; }
}

void print_ending(const run_facts& facts, console& to) {
  if (const auto& by = facts.holder) {
    const auto where = by->is_here ? "" : fmt::format(" on host {}", printable(to, by->host));
    if (by->is_gone) {
      to.out << "ended:  " << paint(to, ink::red, "killed") << ", pid " << by->pid << where << '\n';
    } else {
      to.out << (by->is_here ? "running, pid " : "running or killed, pid ") << by->pid << where << ", since " << printable(to, by->since)
             << '\n';
    }
  }
  if (!facts.ending) { return; }
  const auto& [how, why, step] = *facts.ending;
  to.out << "ended:  " << paint(to, how == session_ending::failed ? ink::red : ink::green, std::string(to_string(how))) << " at step "
         << step << ", " << printable(to, why.text) << '\n';
}

void print_group(const run_facts& facts, console& to) {
  if (facts.group.empty()) { return; }
  to.out << "group:  " << printable(to, facts.group) << " (" << count_text(facts.generations, "generation") << " so far)\n";
}

void print_event_files(const run_facts& facts, console& to) {
  text_table table({"EVENT FILE", ">RECORDS", ">SIZE", ">LAST STEP"});
  for (const auto& one : facts.event_files) {
    table.add({{printable(to, io::base_name(one.path)), ink::cyan},
               std::to_string(one.records),
               size_text(one.bytes),
               one.last_step ? std::to_string(*one.last_step) : "-"});
  }
  if (!table.empty()) {
    to.out << '\n';
    table.print(to);
  }
}

void print_rates(const run_facts& facts, console& to) {
  const auto rates = facts.progress.rates(bars);
  if (rates.empty()) { return; }
  const auto sessions = facts.progress.sessions();
  to.out << "\nsteps/s  " << paint(to, ink::green, spark_line(rates, to.ascii)) << "  up to " << number_text(std::ranges::max(rates))
         << ", last " << number_text(rates.back()) << ", over " << duration_text(facts.progress.seconds())
         << (sessions > 1 ? fmt::format(" in {} sessions", sessions) : std::string()) << " from " << time_text(facts.progress.begin())
         << '\n';
}

void print_as_text(const run_facts& facts, const std::string& directory, console& to) {
  const auto last_step = facts.last_step();
  to.out << paint(to, ink::bold, printable(to, directory)) << ": "
         << (last_step ? fmt::format("last step {}", *last_step) : std::string("no step known")) << ", " << size_text(facts.bytes) << " in "
         << count_text(facts.files, "file") << " (checkpoints " << size_text(bytes_of(facts.checkpoints)) << ", event files "
         << size_text(bytes_of(facts.event_files)) << ")\n";
  print_checkpoints(facts, to);
  print_ending(facts, to);
  print_group(facts, to);
  print_event_files(facts, to);
  print_rates(facts, to);
}

void print_as_json(const run_facts& facts, const std::string& directory, console& to) {
  json_document document(to.out);
  document.add("directory", directory);
  if (const auto last_step = facts.last_step()) { document.add("last_step", *last_step); }
  document.add("bytes", facts.bytes);
  document.add("files", facts.files);
  if (facts.newest_checkpoint) { document.add("newest_checkpoint", *facts.newest_checkpoint); }
  if (facts.ending) {
    const auto& [how, why, step] = *facts.ending;
    document.add(
        "ending",
        json{{"how", std::string(to_string(how))}, {"cause", std::string(to_string(why.cause))}, {"text", why.text}, {"step", step}});
  }
  if (const auto& by = facts.holder) {
    document.add("holder", json{{"pid", by->pid}, {"host", by->host}, {"since", by->since}, {"gone", by->is_gone}});
  }
  if (!facts.group.empty()) { document.add("group", json{{"last", facts.group}, {"generations", facts.generations}}); }
  document.add_list("checkpoints", facts.checkpoints, [](const checkpoint_line& one) {
    json made{{"prefix", one.prefix}};
    if (one.step) { made["step"] = *one.step; }
    made["time"] = json_number(one.time);
    made["bytes"] = one.bytes;
    return made;
  });
  document.add_list("event_files", facts.event_files, [](const event_line& one) {
    json made{{"path", one.path}, {"records", one.records}, {"bytes", one.bytes}};
    if (one.last_step) { made["last_step"] = *one.last_step; }
    return made;
  });
  document.add_list("steps_per_second", facts.progress.rates(bars), json_number<double>);
  document.add("running_seconds", json_number(facts.progress.seconds()));
  document.add("sessions", facts.progress.sessions());
  document.end();
}

}  // namespace

std::string spark_line(const std::vector<double>& values, bool ascii) {
  constexpr std::array<std::string_view, 9> letters = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  constexpr std::string_view ascii_letters = " .:-=+*#@";
  const double greatest = values.empty() ? 0 : std::ranges::max(values);
  std::string line;
  for (const double value : values) {
    const double part = greatest > 0 ? std::clamp(value / greatest, 0.0, 1.0) : 0;
    const auto height = static_cast<std::size_t>(std::ceil(part * 8));
    line += ascii ? ascii_letters.substr(height, 1) : letters[height];
  }
  return line;
}

exit_code run_stats(const run_stats_options& options, console& to) {
  require_directory(to, options.directory);
  run_facts facts;
  add_usage(to, value_or_throw(to.files->canonical(options.directory)), facts);
  add_checkpoints(to, options.directory, facts);
  add_ending(to, options.directory, facts);
  for (const auto& path : event_files_in(to, options.directory)) { add_event_file(to, path, facts); }
  if (facts.checkpoints.empty() && facts.event_files.empty()) {
    throw not_found_error(
        fmt::format("there is no run in this directory: no checkpoint (*.index) and no event file (*tfevents*) among its {}; "
                    "subdirectories are not searched",
                    count_text(value_or_throw(to.files->list(options.directory)).size(), "name")),
        options.directory);
  }
  options.json ? print_as_json(facts, options.directory, to) : print_as_text(facts, options.directory, to);
  return facts.how;
}

}  // namespace stepwell::tool
