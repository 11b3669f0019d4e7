// SPDX-License-Identifier: Apache-2.0
//
// `stepwell events`: shows the contents of event files.
#pragma once

#include "stepwell/format/events/event.hpp"
#include "tool/console.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace stepwell::tool {

/// The form of the output.
enum class events_form {
  summary,       ///< One line for each tag.
  summary_json,  ///< The summary as one JSON document.
  lines,         ///< One line of text for each value.
  csv,
  json,  ///< One JSON document for each value, each on its own line.
};

/// Options of `stepwell events`.
struct events_options {
  std::string target;                  ///< An event file, or a directory of them.
  std::vector<std::string> tags = {};  ///< Show only these tags; empty: all.
  events_form form = events_form::summary;
  bool recursive = false;
  bool follow = false;  ///< Continue with events that are written later; `form` must not be a summary then.
};

/// Shows events in the order of the files. If a file is damaged, the damage is reported, the events before it are shown, and the next file
/// is read. A truncated last record counts as damage, too, except with `follow`, because the file may still be written.
/// @errors Those of reading; `not_found_error`, after the output, if no value has one of the tags.
/// @cost Memory for the largest record and the names of all tags; for a summary also one line for each tag.
[[nodiscard]] outcome events(const events_options& options, console& to);

/// Receives events and shows them.
class event_sink {
public:
  event_sink() = default;
  event_sink(const event_sink&) = delete;
  event_sink& operator=(const event_sink&) = delete;
  virtual ~event_sink() = default;

  virtual void add(std::string_view file, const format::event& happened) = 0;
  /// Called at the end of each file.
  virtual void end_file(std::string_view /*file*/, std::uint64_t /*records*/, std::uint64_t /*bytes*/) {}
  virtual void finish() {}
};

[[nodiscard]] std::unique_ptr<event_sink> make_summary_sink(const events_options& options, console& to);
[[nodiscard]] std::unique_ptr<event_sink> make_line_sink(const events_options& options, console& to);

}  // namespace stepwell::tool
