// SPDX-License-Identifier: Apache-2.0
//
// Shows each event as a line, a CSV row, or a JSON document.
#include "tool/event_values.hpp"
#include "tool/events.hpp"
#include "tool/json_writer.hpp"
#include "tool/text.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <variant>

namespace stepwell::tool {
namespace {

/// One row of output. The tag is empty if the event is not a summary.
struct row {
  std::string_view file;
  const format::event* happened = nullptr;
  std::string_view tag;
  std::string kind;
  const format::summary_value* value = nullptr;

  [[nodiscard]] std::string text() const { return value != nullptr ? value_text(*value) : event_text(*happened); }
};

/// Returns `text` as a field according to RFC 4180.
std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) { return std::string(text); }
  std::string quoted = "\"";
  for (const char letter : text) { quoted.append(letter == '"' ? 2 : 1, letter); }
  return quoted + '"';
}

class line_sink final : public event_sink {
public:
  line_sink(const events_options& options, console& to) : options_(options), to_(to) {
    if (options_.form == events_form::csv) { to_.out << "file,wall_time,step,tag,kind,value\n"; }
  }

  void add(std::string_view file, const format::event& happened) override {
    const auto* values = std::get_if<format::summary>(&happened.what);
    if (values == nullptr) {
      if (options_.tags.empty()) { show({file, &happened, {}, std::string(what_of(happened))}); }
      return;
    }
    for (const auto& value : values->values) {
      auto kind = kinds_.of(value);
      if (options_.tags.empty() || std::ranges::find(options_.tags, value.tag) != options_.tags.end()) {
        show({file, &happened, value.tag, std::move(kind), &value});
      }
    }
  }

private:
  void show(const row& one) {
    switch (options_.form) {
      case events_form::csv: return show_csv(one);
      case events_form::json: return show_json(one);
      default: return show_line(one);
    }
  }
  void show_line(const row& one) {
    to_.out << paint(to_, ink::dim, time_text(one.happened->wall_time)) << "  " << one.happened->step << "  "
            << (one.tag.empty() ? paint(to_, ink::yellow, one.kind) : paint(to_, ink::cyan, printable(one.tag))) << "  " << one.text()
            << '\n';
  }
  void show_csv(const row& one) {
    to_.out << csv_field(printable(one.file)) << ',' << fmt::format("{}", one.happened->wall_time) << ',' << one.happened->step << ','
            << csv_field(printable(one.tag)) << ',' << one.kind << ',' << csv_field(one.text()) << '\n';
  }
  void show_json(const row& one) {
    json_writer json(to_.out);
    json.begin_object();
    json.member("file", one.file);
    json.member("wall_time", one.happened->wall_time);
    json.member("step", one.happened->step);
    json.member("kind", one.kind);
    if (one.value != nullptr) {
      json.member("tag", one.tag);
      json.key("value");
      write_value(json, *one.value);
    } else {
      json.key("value");
      write_event(json, *one.happened);
    }
    json.end_object();
    to_.out << '\n';
  }

  const events_options& options_;
  console& to_;
  value_kinds kinds_;
};

}  // namespace

std::unique_ptr<event_sink> make_line_sink(const events_options& options, console& to) { return std::make_unique<line_sink>(options, to); }

}  // namespace stepwell::tool
