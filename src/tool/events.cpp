// SPDX-License-Identifier: Apache-2.0
//
// `stepwell events`: shows events as lines, CSV rows, JSON documents, or a summary.
#include "tool/commands.hpp"

#include "stepwell/base/error.hpp"
#include "stepwell/format/detail/metric_line.hpp"
#include "tool/event_stream.hpp"
#include "tool/event_values.hpp"
#include "tool/repeated_steps.hpp"
#include "tool/target.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <chrono>
#include <compare>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <utility>
#include <variant>

namespace stepwell::tool {
namespace {

constexpr auto between_looks = std::chrono::seconds(1);

/// An event, or one value of it. The tag is empty if the event is not a summary.
struct row {
  std::string_view file;
  const format::event& happened;
  std::string_view tag;
  std::string kind;
  const format::summary_value* value = nullptr;

  [[nodiscard]] std::string text() const { return value != nullptr ? value_text(*value) : event_text(happened); }
  [[nodiscard]] tool::json json() const { return value != nullptr ? value_json(*value) : event_json(happened); }
};

/// Shows the events that have one of the requested tags, and collects all tags.
class event_sink {
public:
  event_sink(const events_options& options, console& to) : options_(options), to_(to) {}
  event_sink(const event_sink&) = delete;
  event_sink& operator=(const event_sink&) = delete;
  virtual ~event_sink() = default;

  /// Shows an event. The values of an obsolete event are only counted.
  void add(std::string_view file, const format::event& happened, bool is_obsolete) {
    const auto* values = std::get_if<format::summary>(&happened.what);
    if (values == nullptr) {
      if (options_.tags.empty()) { show({file, happened, {}, std::string(what_of(happened))}); }
      return;
    }
    for (const auto& value : values->values) {
      auto kind = kinds_.of(value);
      if (!seen_.contains(value.tag)) { seen_.insert(value.tag); }
      const auto matches = [&](const std::string& pattern) { return matches_tag(pattern, value.tag); };
      if (!options_.tags.empty() && std::ranges::none_of(options_.tags, matches)) { continue; }
      if (is_obsolete) {
        ++obsolete_values_;
      } else {
        show({file, happened, value.tag, std::move(kind), &value});
      }
    }
  }
  /// Called at the end of each file.
  virtual void end_file(std::string_view /*file*/, std::uint64_t /*records*/, std::uint64_t /*bytes*/) {}
  virtual void finish() {}

  /// Returns the number of values that were left out because the run made their steps again.
  [[nodiscard]] std::uint64_t obsolete_values() const noexcept { return obsolete_values_; }

  /// Throws `not_found_error` if one of the requested tags was not seen.
  void require_tags() const {
    for (const auto& tag : options_.tags) {
      if (std::ranges::any_of(seen_, [&](const auto& seen) { return matches_tag(tag, seen); })) { continue; }
      throw not_found_error(
          fmt::format("there is no tag \"{}\"; tags are {}", tag, seen_.empty() ? "none" : fmt::format("{}", fmt::join(seen_, ", "))),
          options_.target);
    }
  }

protected:
  virtual void show(const row& one) = 0;

  const events_options& options_;
  console& to_;

private:
  value_kinds kinds_;
  std::set<std::string, std::less<>> seen_;
  std::uint64_t obsolete_values_ = 0;
};

/// Returns `text` as a quoted field according to RFC 4180. A text that spreadsheets would read as a formula begins with an apostrophe.
std::string csv_field(std::string_view text) {
  if (format::is_formula(text)) { return csv_field("'" + std::string(text)); }
  std::string quoted = "\"";
  for (const char letter : text) { quoted.append(letter == '"' ? 2 : 1, letter); }
  return quoted + '"';
}

/// Shows each event as a line, a CSV row, or a JSON document.
class line_sink final : public event_sink {
public:
  line_sink(const events_options& options, console& to) : event_sink(options, to) {
    if (options_.form == events_form::csv) { to_.out << R"("file","wall_time","step","tag","kind","value")" << '\n'; }
  }

private:
  void show(const row& one) override {
    switch (options_.form) {
      case events_form::csv: return show_csv(one);
      case events_form::json: return show_json(one);
      default: return show_line(one);
    }
  }
  void show_line(const row& one) {
    to_.out << paint(to_, ink::dim, time_text(one.happened.wall_time)) << "  " << one.happened.step << "  "
            << (one.tag.empty() ? paint(to_, ink::yellow, one.kind) : paint(to_, ink::cyan, printable(to_, one.tag))) << "  "
            << printable(to_, one.text()) << '\n';
  }
  void show_csv(const row& one) {
    to_.out << csv_field(printable(one.file)) << ',' << csv_field(fmt::format("{}", one.happened.wall_time)) << ','
            << csv_field(std::to_string(one.happened.step)) << ',' << csv_field(printable(one.tag)) << ',' << csv_field(one.kind) << ','
            << csv_field(one.text()) << '\n';
  }
  void show_json(const row& one) {
    json_document document(to_.out);
    document.add("file", one.file);
    document.add("wall_time", json_number(one.happened.wall_time));
    document.add("step", one.happened.step);
    document.add("kind", one.kind);
    if (one.value != nullptr) { document.add("tag", one.tag); }
    document.add("value", one.json());
    document.end();
  }
};

/// The count, steps and times of the events of one kind, or of the values of one tag.
struct extent {
  std::uint64_t count = 0;
  std::int64_t first_step = 0;
  std::int64_t last_step = 0;
  double begin = 0;  ///< Seconds since 1970.
  double end = 0;
  json last;  ///< The last value; for output as text, its text.

  void add(const format::event& happened, json value) {
    first_step = count == 0 ? happened.step : std::min(first_step, happened.step);
    last_step = count == 0 ? happened.step : std::max(last_step, happened.step);
    begin = count == 0 ? happened.wall_time : std::min(begin, happened.wall_time);
    end = count == 0 ? happened.wall_time : std::max(end, happened.wall_time);
    last = std::move(value);
    ++count;
  }
};

/// Shows a summary of the files: their tags, with counts, steps and times.
class summary_sink final : public event_sink {
public:
  using event_sink::event_sink;

  void end_file(std::string_view file, std::uint64_t records, std::uint64_t bytes) override {
    files_.push_back({std::string(file), records, bytes});
  }
  void finish() override { is_json() ? print_json() : print_text(); }

private:
  struct read_file {
    std::string path;
    std::uint64_t records = 0;
    std::uint64_t bytes = 0;

    [[nodiscard]] std::string directory() const { return io::parent_directory(path); }
  };
  struct tag_key {
    std::string directory;
    std::string tag;
    std::string kind;

    friend auto operator<=>(const tag_key&, const tag_key&) = default;
  };

  [[nodiscard]] bool is_json() const noexcept { return options_.form == events_form::summary_json; }

  void show(const row& one) override {
    extents_[{io::parent_directory(one.file), std::string(one.tag), one.kind}].add(one.happened, is_json() ? one.json() : json(one.text()));
  }

  /// Prints a line for each directory.
  void print_files() {
    for (auto first = files_.begin(); first != files_.end();) {
      const auto directory = first->directory();
      const auto last = std::find_if(first, files_.end(), [&](const auto& file) { return file.directory() != directory; });
      std::uint64_t records = 0;
      std::uint64_t bytes = 0;
      for (auto file = first; file != last; ++file) {
        records += file->records;
        bytes += file->bytes;
      }
      const bool is_single = last - first == 1;
      to_.out << paint(to_, ink::bold, printable(to_, is_single ? first->path : directory)) << ": " << count_text(records, "record") << ", "
              << size_text(bytes) << (is_single ? "" : fmt::format(" in {} event files", last - first)) << '\n';
      is_several_runs_ = is_several_runs_ || last != files_.end();
      first = last;
    }
    if (obsolete_values() == 0) { return; }
    to_.out << count_text(obsolete_values(), "value")
            << " of steps that were made again after a resume or a rollback left out; --all shows all\n";
  }

  void print_text() {
    print_files();
    std::vector<std::string> headings{"TAG", "KIND", ">COUNT", "STEPS", "TIME (UTC)", "LAST VALUE"};
    if (is_several_runs_) { headings.insert(headings.begin(), "RUN"); }
    text_table table(std::move(headings));
    for (const auto& [key, of] : extents_) {
      const auto steps =
          of.first_step == of.last_step ? std::to_string(of.last_step) : fmt::format("{} to {}", of.first_step, of.last_step);
      const auto length = of.end > of.begin ? " + " + duration_text(of.end - of.begin) : "";
      std::vector<cell> row{{key.tag.empty() ? "-" : printable(key.tag), ink::cyan},
                            key.kind,
                            std::to_string(of.count),
                            steps,
                            {time_text(of.begin) + length, ink::dim},
                            of.last.get<std::string>()};
      if (is_several_runs_) { row.insert(row.begin(), printable(key.directory)); }
      table.add(std::move(row));
    }
    if (table.empty()) { return; }
    to_.out << '\n';
    table.print(to_);
  }

  void print_json() {
    json_document document(to_.out);
    document.add_list("files", files_,
                      [](const auto& file) { return json{{"path", file.path}, {"records", file.records}, {"bytes", file.bytes}}; });
    document.add("obsolete_values", obsolete_values());
    document.add_list("tags", extents_, [](const auto& entry) {
      const auto& [key, of] = entry;
      return json{{"run", key.directory},
                  {"tag", key.tag},
                  {"kind", key.kind},
                  {"count", of.count},
                  {"first_step", of.first_step},
                  {"last_step", of.last_step},
                  {"begin", json_number(of.begin)},
                  {"end", json_number(of.end)},
                  {"last", of.last}};
    });
    document.end();
  }

  std::vector<read_file> files_;
  std::map<tag_key, extent> extents_;
  bool is_several_runs_ = false;
};

/// Shows the remaining events of a file that may grow. No value is left out.
exit_code drain(event_stream& stream, event_sink& sink, console& to) {
  return each_event(stream, to, [&](const format::event& happened) { sink.add(stream.path(), happened, false); });
}

/// Shows the events of the files of one directory. `known` has their START events.
exit_code show(const std::vector<std::string>& files, const repeated_steps& known, event_sink& sink, console& to) {
  exit_code how = exit_code::good;
  for (std::size_t i = 0; i < files.size(); ++i) {
    event_stream stream(*to.files, files[i]);
    auto seen = each_event(
        stream, to, [&](const format::event& happened) { sink.add(files[i], happened, known.is_obsolete(i, stream.records(), happened)); });
    sink.end_file(files[i], stream.records(), stream.bytes());
    if (!stream.is_lost() && stream.cut_short() != 0) {
      print_error(to, fmt::format("{}: the last record is truncated, only {} of it are present; it may still be being written", files[i],
                                  count_text(stream.cut_short(), "byte")));
      seen = exit_code::damaged;
    }
    how = worse(how, seen);
  }
  return how;
}

/// Shows the events of all files, directory by directory. The files of a directory are one run.
exit_code show_all(const events_options& options, event_sink& sink, console& to) {
  const auto files = require_event_files(to, options.target, options.recursive, ", or add --recursive");
  const bool merges = !options.all && is_directory(to, options.target);
  exit_code how = exit_code::good;
  for (auto first = files.begin(); first != files.end();) {
    const auto directory = io::parent_directory(*first);
    const auto last = std::find_if(first, files.end(), [&](const auto& file) { return io::parent_directory(file) != directory; });
    const std::vector<std::string> run(first, last);
    how = worse(how, show(run, merges ? repeated_steps(run, to) : repeated_steps(), sink, to));
    first = last;
  }
  return how;
}

/// Waits for the polling interval. Returns false if the command was stopped.
bool pause(console& to) {
  std::mutex mutex;
  std::condition_variable stopped;
  const std::stop_callback wake(to.stop, [&] {
    { const std::lock_guard held(mutex); }
    stopped.notify_all();
  });
  std::unique_lock lock(mutex);
  const auto when = to.time->now() + between_looks;
  to.time->wait_until(lock, stopped, when, [&] { return to.stop.stop_requested() || to.time->now() >= when; });
  return !to.stop.stop_requested();
}

/// Follows the newest file, and switches to a later file when one appears. Does not return to earlier files, like viewers.
class follower {
public:
  follower(const events_options& options, event_sink& sink, console& to) : options_(options), sink_(sink), to_(to) {}

  exit_code run() {
    do {
      while (look()) {}
      to_.out.flush();
    } while (to_.out && pause(to_));
    return how_;
  }

private:
  /// Shows new events of the current file. If there is a later file, makes it the current file and returns true.
  bool look() {
    if (stream_) { how_ = worse(how_, drain(*stream_, sink_, to_)); }
    const auto files = is_directory(to_, options_.target) ? event_files_in(to_, options_.target) : std::vector{options_.target};
    const auto later = std::ranges::find_if(files, [&](const auto& path) { return !stream_ || path > stream_->path(); });
    if (later == files.end()) { return false; }
    stream_.emplace(*to_.files, *later);
    return true;
  }

  const events_options& options_;
  event_sink& sink_;
  console& to_;
  std::optional<event_stream> stream_;
  exit_code how_ = exit_code::good;
};

}  // namespace

exit_code events(const events_options& options, console& to) {
  const bool is_summary = options.form == events_form::summary || options.form == events_form::summary_json;
  if (options.follow && is_summary) { throw invalid_argument_error("--follow cannot be used with a summary; follow lines, CSV or JSON"); }
  if (options.follow && options.recursive) {
    throw invalid_argument_error("--follow cannot be used with --recursive; follow one directory");
  }
  const auto sink =
      is_summary ? std::unique_ptr<event_sink>(std::make_unique<summary_sink>(options, to)) : std::make_unique<line_sink>(options, to);
  if (options.follow) { return follower(options, *sink, to).run(); }
  const auto how = show_all(options, *sink, to);
  sink->finish();
  if (how == exit_code::good) { sink->require_tags(); }  // with damage the tag may be in the unreadable part
  return how;
}

}  // namespace stepwell::tool
