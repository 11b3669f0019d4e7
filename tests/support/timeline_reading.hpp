// SPDX-License-Identifier: Apache-2.0
//
// Reads timelines as a viewer reads them: JSON in files `timeline-STEP.json`.
#pragma once

#include "support/file_text.hpp"

#include <stepwell/base/detail/thread.hpp>
#include <stepwell/base/detail/type_key.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace stepwell::test {

/// Returns the steps that have a timeline in a directory.
inline std::vector<std::int64_t> timelines_in(const std::string& directory) {
  std::vector<std::int64_t> found;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    const auto name = entry.path().filename().string();
    if (name.starts_with("timeline-") && name.ends_with(".json")) { found.push_back(std::stol(name.substr(9))); }
  }
  std::ranges::sort(found);
  return found;
}

/// One span of a timeline. Times are in microseconds.
struct shown_span {
  std::string name;
  std::string thread;
  double begin;
  double micros;
};

/// Returns the spans that a viewer shows for a step, in the order of the file.
inline std::vector<shown_span> shown_in(const std::string& directory, std::int64_t step) {
  const auto timeline = nlohmann::json::parse(file_text(directory + "/timeline-" + std::to_string(step) + ".json"));
  std::map<int, std::string> threads;
  std::vector<shown_span> shown;
  for (const auto& event : timeline.at("traceEvents")) {
    if (event.at("name") == "thread_name") { threads[event.at("tid")] = event.at("args").at("name"); }
    if (event.at("ph") == "X") { shown.push_back({event.at("name"), threads.at(event.at("tid")), event.at("ts"), event.at("dur")}); }
  }
  return shown;
}

inline std::vector<std::string> names_of(const std::vector<shown_span>& shown) {
  std::vector<std::string> names;
  for (const auto& span : shown) { names.push_back(span.name); }
  return names;
}

inline std::ptrdiff_t count(const std::vector<shown_span>& shown, std::string_view name) {
  return std::ranges::count(shown, name, &shown_span::name);
}
inline bool has(const std::vector<shown_span>& shown, std::string_view name, std::string_view thread) {
  return std::ranges::any_of(shown, [&](const auto& span) { return span.name == name && span.thread == thread; });
}

/// Returns the name of the span for one point of a hook.
template<class Hook>
std::string point_of(std::string_view which) {
  return "hook " + std::string(type_name<Hook>()) + " " + std::string(which);
}

/// A guard that names the thread of a test.
class named_thread {
public:
  explicit named_thread(std::string_view name) { set_thread_name(name); }
  named_thread(const named_thread&) = delete;
  named_thread& operator=(const named_thread&) = delete;
  ~named_thread() { set_thread_name(""); }
};

}  // namespace stepwell::test
