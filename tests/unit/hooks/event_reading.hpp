// SPDX-License-Identifier: Apache-2.0
//
// Functions that read the values and notes that hooks wrote to the event files of a directory.
#pragma once

#include "unit/summary/events_of.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace stepwell::test {

/// Returns all events of all event files, one file after another.
inline std::vector<format::event> events_in(const std::string& directory) {
  std::vector<format::event> all;
  for (const auto& name : file_names_in(directory)) {
    if (name.find("tfevents") == std::string::npos) { continue; }
    for (auto& event : events_of(directory + "/" + name)) { all.push_back(std::move(event)); }
  }
  return all;
}

inline std::size_t event_files_in(const std::string& directory) {
  std::size_t count = 0;
  for (const auto& name : file_names_in(directory)) { count += name.find("tfevents") != std::string::npos ? 1U : 0U; }
  return count;
}

/// Returns the session notes of one kind as pairs of step and checkpoint path.
inline std::vector<std::pair<std::int64_t, std::string>> notes_in(const std::string& directory, format::session_status kind) {
  std::vector<std::pair<std::int64_t, std::string>> found;
  for (const auto& event : events_in(directory)) {
    const auto* note = std::get_if<format::session_log>(&event.what);
    if (note != nullptr && note->status == kind) { found.emplace_back(event.step, note->checkpoint_path); }
  }
  return found;
}

/// Returns the values of a tag with their steps.
inline std::vector<std::pair<std::int64_t, format::summary_value>> tagged_in(const std::string& directory, const std::string& tag) {
  std::vector<std::pair<std::int64_t, format::summary_value>> found;
  for (const auto& event : events_in(directory)) {
    const auto* values = std::get_if<format::summary>(&event.what);
    if (values == nullptr) { continue; }
    for (const auto& value : values->values) {
      if (value.tag == tag) { found.emplace_back(event.step, value); }
    }
  }
  return found;
}

/// Returns the scalars of a tag by step.
inline std::map<std::int64_t, float> scalars_in(const std::string& directory, const std::string& tag) {
  std::map<std::int64_t, float> found;
  for (const auto& [step, value] : tagged_in(directory, tag)) { found[step] = std::get<float>(value.value); }
  return found;
}

}  // namespace stepwell::test
