// SPDX-License-Identifier: Apache-2.0
//
// Shows a summary of event files: their tags, with counts, steps and times.
#include "tool/event_values.hpp"
#include "tool/events.hpp"
#include "tool/json_writer.hpp"
#include "tool/text.hpp"
#include "tool/text_table.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <map>
#include <sstream>
#include <utility>
#include <variant>

namespace stepwell::tool {
namespace {

/// The count, steps and times of the events of one kind, or of the values of one tag.
struct extent {
  std::uint64_t count = 0;
  std::int64_t first_step = 0;
  std::int64_t last_step = 0;
  double begin = 0;  ///< Seconds since 1970.
  double end = 0;
  std::string last;  ///< The last value, in the form in which it is shown.

  void add(const format::event& happened, std::string text) {
    first_step = count == 0 ? happened.step : std::min(first_step, happened.step);
    last_step = count == 0 ? happened.step : std::max(last_step, happened.step);
    begin = count == 0 ? happened.wall_time : std::min(begin, happened.wall_time);
    end = count == 0 ? happened.wall_time : std::max(end, happened.wall_time);
    last = std::move(text);
    ++count;
  }
};

struct read_file {
  std::string path;
  std::uint64_t records = 0;
  std::uint64_t bytes = 0;
};

class summary_sink final : public event_sink {
public:
  summary_sink(const events_options& options, console& to) : options_(options), to_(to) {}

  void add(std::string_view /*file*/, const format::event& happened) override {
    const auto* values = std::get_if<format::summary>(&happened.what);
    if (values == nullptr) {
      if (options_.tags.empty()) {
        extents_[{"", std::string(what_of(happened))}].add(happened, is_json() ? json_of(happened, &write_event) : event_text(happened));
      }
      return;
    }
    for (const auto& value : values->values) {
      const auto kind = kinds_.of(value);
      if (options_.tags.empty() || std::ranges::find(options_.tags, value.tag) != options_.tags.end()) {
        extents_[{value.tag, kind}].add(happened, is_json() ? json_of(value, &write_value) : value_text(value));
      }
    }
  }
  void end_file(std::string_view file, std::uint64_t records, std::uint64_t bytes) override {
    files_.push_back({std::string(file), records, bytes});
  }
  void finish() override { is_json() ? print_json() : print_text(); }

private:
  [[nodiscard]] bool is_json() const noexcept { return options_.form == events_form::summary_json; }

  template<class Value>
  static std::string json_of(const Value& value, void (*write)(json_writer&, const Value&)) {
    std::ostringstream text;
    json_writer json(text);
    write(json, value);
    return text.str();
  }

  void print_text() {
    for (const auto& file : files_) {
      to_.out << paint(to_, ink::bold, printable(file.path)) << ": " << count_text(file.records, "record") << ", " << size_text(file.bytes)
              << '\n';
    }
    text_table table({"TAG", "KIND", ">COUNT", "STEPS", "TIME (UTC)", "LAST VALUE"});
    for (const auto& [key, of] : extents_) {
      const auto steps =
          of.first_step == of.last_step ? std::to_string(of.last_step) : fmt::format("{} to {}", of.first_step, of.last_step);
      const auto length = of.end > of.begin ? " + " + duration_text(of.end - of.begin) : "";
      table.add({{key.first.empty() ? "-" : printable(key.first), ink::cyan},
                 key.second,
                 std::to_string(of.count),
                 steps,
                 {time_text(of.begin) + length, ink::dim},
                 of.last});
    }
    if (table.empty()) { return; }
    to_.out << '\n';
    table.print(to_);
  }

  void print_json() {
    json_writer json(to_.out);
    json.begin_object();
    json.key("files");
    write_objects(json, files_, [&](const auto& file) {
      json.member("path", file.path);
      json.member("records", file.records);
      json.member("bytes", file.bytes);
    });
    json.key("tags");
    write_objects(json, extents_, [&](const auto& entry) {
      const auto& [key, of] = entry;
      json.member("tag", key.first);
      json.member("kind", key.second);
      json.member("count", of.count);
      json.member("first_step", of.first_step);
      json.member("last_step", of.last_step);
      json.member("begin", of.begin);
      json.member("end", of.end);
      json.key("last");
      json.literal(of.last);
    });
    json.end_object();
    to_.out << '\n';
  }

  const events_options& options_;
  console& to_;
  value_kinds kinds_;
  std::vector<read_file> files_;
  std::map<std::pair<std::string, std::string>, extent> extents_;  // by tag and kind
};

}  // namespace

std::unique_ptr<event_sink> make_summary_sink(const events_options& options, console& to) {
  return std::make_unique<summary_sink>(options, to);
}

}  // namespace stepwell::tool
