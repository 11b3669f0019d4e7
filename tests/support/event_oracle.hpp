// SPDX-License-Identifier: Apache-2.0
//
// Reads event files independently of the library under test: this code parses the records, protobuf's classes parse the
// events.
#pragma once

#include "support/bundle_oracle.hpp"
#include "support/file_text.hpp"

#include "stepwell/format/proto/event.pb.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace stepwell::test {

/// Returns all events of a file, up to a record that is cut off at the end of the file. Throws if a checksum is wrong.
inline std::vector<::tensorflow::Event> events_with_oracle(const std::string& path) {
  constexpr std::size_t head = 12;
  const auto text = file_text(path);
  std::string_view rest = text;
  std::vector<::tensorflow::Event> events;
  const auto checked = [&](std::string_view bytes) {
    std::uint32_t crc = 0;
    std::memcpy(&crc, bytes.data() + bytes.size(), sizeof crc);
    if (crc != slow_masked(slow_crc32c(bytes))) { throw std::runtime_error("a checksum does not match in " + path); }
    return bytes;
  };
  while (rest.size() >= head) {
    std::uint64_t size = 0;
    std::memcpy(&size, checked(rest.substr(0, sizeof size)).data(), sizeof size);
    if (rest.size() < head + size + 4) { break; }
    const auto data = checked(rest.substr(head, static_cast<std::size_t>(size)));
    if (!events.emplace_back().ParseFromArray(data.data(), static_cast<int>(data.size()))) {
      throw std::runtime_error("an event does not parse in " + path);
    }
    rest.remove_prefix(head + static_cast<std::size_t>(size) + 4);
  }
  return events;
}

/// Returns the steps at which `tag` has a value, as viewers show them: a START event removes earlier values at its step
/// and above.
inline std::set<std::int64_t> steps_with_oracle(const std::string& directory, const std::string& tag) {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (entry.path().filename().string().starts_with("events.out.tfevents.")) { paths.push_back(entry.path().string()); }
  }
  std::ranges::sort(paths);  // the names sort by time (decision D-9)
  std::set<std::int64_t> steps;
  for (const auto& path : paths) {
    for (const auto& event : events_with_oracle(path)) {
      const bool is_start = event.has_session_log() && event.session_log().status() == ::tensorflow::SessionLog::START;
      if (is_start) { steps.erase(steps.lower_bound(event.step()), steps.end()); }
      for (const auto& value : event.summary().value()) {
        if (value.tag() == tag) { steps.insert(event.step()); }
      }
    }
  }
  return steps;
}

}  // namespace stepwell::test
