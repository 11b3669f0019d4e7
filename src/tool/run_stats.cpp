// SPDX-License-Identifier: Apache-2.0
#include "tool/run_stats.hpp"

#include "stepwell/base/error.hpp"
#include "stepwell/checkpoint/latest_checkpoint.hpp"
#include "stepwell/format/checkpoint/bundle.hpp"
#include "stepwell/io/path.hpp"
#include "tool/event_stream.hpp"
#include "tool/json_writer.hpp"
#include "tool/run_progress.hpp"
#include "tool/target.hpp"
#include "tool/text.hpp"
#include "tool/text_table.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <optional>
#include <utility>
#include <variant>

namespace stepwell::tool {
namespace {

constexpr std::size_t bars = 40;

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
  std::optional<std::int64_t> last_step = {};
  std::uint64_t bytes = 0;
  std::uint64_t files = 0;
  outcome how = outcome::good;

  void saw(std::int64_t step) { last_step = std::max(last_step.value_or(step), step); }
};

void add_usage(const console& to, const std::string& directory, int depth, run_facts& facts) {
  for (const auto& name : value_or_throw(to.files->list(directory))) {
    const auto path = io::join_path(directory, name);
    const auto info = to.files->stat(path);
    if (info && info->is_directory) {
      if (depth > 0) { add_usage(to, path, depth - 1, facts); }
    } else if (info) {
      facts.bytes += info->size;
      ++facts.files;
    }
  }
}

void add_checkpoints(const console& to, const std::string& directory, run_facts& facts) {
  for (const auto& prefix : indexes_in(to, directory)) {
    const auto info = to.files->stat(format::index_name(prefix));
    if (!info) { continue; }  // deleted in the meantime
    const auto time = std::chrono::duration<double>(info->modified.time_since_epoch()).count();
    facts.checkpoints.push_back({prefix, step_of_checkpoint(prefix), time, size_on_disk(to, prefix)});
    if (const auto step = facts.checkpoints.back().step) { facts.saw(*step); }
  }
  facts.newest_checkpoint = newest_checkpoint(to, directory);
}

void add_event_file(console& to, const std::string& path, run_facts& facts) {
  event_stream stream(*to.files, path);
  event_line line{.path = path};
  facts.progress.begin_file();
  try {
    while (const auto happened = stream.next()) {
      facts.progress.add(*happened);
      const bool is_value = std::holds_alternative<format::summary>(happened->what);  // a START event contains a step that is not done yet
      if (is_value) { line.last_step = std::max(line.last_step.value_or(happened->step), happened->step); }
    }
  } catch (const data_loss_error& damage) {
    to.err << "stepwell: " << printable(damage.what()) << '\n';
    facts.how = outcome::damaged;
  }
  line.records = stream.records();
  line.bytes = stream.bytes();
  if (line.last_step) { facts.saw(*line.last_step); }
  facts.event_files.push_back(std::move(line));
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
    table.add({{printable(io::base_name(one.prefix)), ink::cyan},
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
  if (facts.newest_checkpoint) { to.out << "newest: " << printable(io::base_name(*facts.newest_checkpoint)) << '\n'; }
}

void print_event_files(const run_facts& facts, console& to) {
  text_table table({"EVENT FILE", ">RECORDS", ">SIZE", ">LAST STEP"});
  for (const auto& one : facts.event_files) {
    table.add({{printable(io::base_name(one.path)), ink::cyan},
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
  to.out << "\nsteps/s  " << paint(to, ink::green, spark_line(rates)) << "  up to " << number_text(std::ranges::max(rates)) << ", last "
         << number_text(rates.back()) << ", over " << duration_text(facts.progress.seconds())
         << (sessions > 1 ? fmt::format(" in {} sessions", sessions) : std::string()) << " from " << time_text(facts.progress.begin())
         << '\n';
}

void print_as_text(const run_facts& facts, const std::string& directory, console& to) {
  to.out << paint(to, ink::bold, printable(directory)) << ": "
         << (facts.last_step ? fmt::format("last step {}", *facts.last_step) : std::string("no step known")) << ", "
         << size_text(facts.bytes) << " in " << count_text(facts.files, "file") << " (checkpoints "
         << size_text(bytes_of(facts.checkpoints)) << ", event files " << size_text(bytes_of(facts.event_files)) << ")\n";
  print_checkpoints(facts, to);
  print_event_files(facts, to);
  print_rates(facts, to);
}

void write_step(json_writer& json, std::string_view name, const std::optional<std::int64_t>& step) {
  if (step) { json.member(name, *step); }
}

void print_as_json(const run_facts& facts, const std::string& directory, console& to) {
  json_writer json(to.out);
  json.begin_object();
  json.member("directory", directory);
  write_step(json, "last_step", facts.last_step);
  json.member("bytes", facts.bytes);
  json.member("files", facts.files);
  if (facts.newest_checkpoint) { json.member("newest_checkpoint", *facts.newest_checkpoint); }
  json.key("checkpoints");
  write_objects(json, facts.checkpoints, [&](const auto& one) {
    json.member("prefix", one.prefix);
    write_step(json, "step", one.step);
    json.member("time", one.time);
    json.member("bytes", one.bytes);
  });
  json.key("event_files");
  write_objects(json, facts.event_files, [&](const auto& one) {
    json.member("path", one.path);
    json.member("records", one.records);
    json.member("bytes", one.bytes);
    write_step(json, "last_step", one.last_step);
  });
  json.key("steps_per_second");
  write_array(json, facts.progress.rates(bars));
  json.member("running_seconds", facts.progress.seconds());
  json.member("sessions", facts.progress.sessions());
  json.end_object();
  to.out << '\n';
}

}  // namespace

std::string spark_line(const std::vector<double>& values) {
  constexpr std::array<std::string_view, 9> letters = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  const double greatest = values.empty() ? 0 : std::ranges::max(values);
  std::string line;
  for (const double value : values) {
    const double part = greatest > 0 ? std::clamp(value / greatest, 0.0, 1.0) : 0;
    line += letters[static_cast<std::size_t>(std::ceil(part * 8))];
  }
  return line;
}

outcome run_stats(const run_stats_options& options, console& to) {
  require_directory(to, options.directory);
  run_facts facts;
  add_usage(to, options.directory, 16, facts);
  add_checkpoints(to, options.directory, facts);
  for (const auto& path : event_files_in(to, options.directory)) { add_event_file(to, path, facts); }
  if (facts.checkpoints.empty() && facts.event_files.empty()) {
    throw not_found_error(
        fmt::format("there is no run in this directory: no checkpoint (*.index) and no event file (*tfevents*) among its {}; "
                    "subdirectories are not searched",
                    count_text(value_or_throw(to.files->list(options.directory)).size(), "name")),
        options.directory);
  }
  (options.json ? print_as_json : print_as_text)(facts, options.directory, to);
  return facts.how;
}

}  // namespace stepwell::tool
