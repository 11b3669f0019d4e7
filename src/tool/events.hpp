// SPDX-License-Identifier: Apache-2.0
//
// `stepwell events`: what is in event files.
#pragma once

#include "stepwell/format/events/event.hpp"
#include "tool/console.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace stepwell::tool {

enum class events_form {
  summary,       ///< A line a tag.
  summary_json,  ///< The same as one document.
  lines,         ///< A line a value, for people.
  csv,
  json,  ///< A document a value, one a line.
};

struct events_options {
  std::string target;                  ///< An event file, or a directory of them.
  std::vector<std::string> tags = {};  ///< Only these; none: all.
  events_form form = events_form::summary;
  bool recursive = false;
  bool follow = false;  ///< Go on with what is written later; `form` is then not a summary.
};

/// Shows events in the order of the files. A damaged file is told of, what stands before the damage is shown, and the next
/// file is read. A last record that is cut short is damage too, unless somebody still writes (`follow`).
/// @errors Those of reading; `not_found_error` for a tag that no value has, after the output.
/// @cost Memory for the largest record, for the names of all tags, and for a summary a line a tag.
[[nodiscard]] outcome events(const events_options& options, console& to);

/// Takes events, and shows them.
class event_sink {
public:
  event_sink() = default;
  event_sink(const event_sink&) = delete;
  event_sink& operator=(const event_sink&) = delete;
  virtual ~event_sink() = default;

  virtual void add(std::string_view file, const format::event& happened) = 0;
  /// A file is at its end.
  virtual void end_file(std::string_view /*file*/, std::uint64_t /*records*/, std::uint64_t /*bytes*/) {}
  virtual void finish() {}
};

[[nodiscard]] std::unique_ptr<event_sink> make_summary_sink(const events_options& options, console& to);
[[nodiscard]] std::unique_ptr<event_sink> make_line_sink(const events_options& options, console& to);

}  // namespace stepwell::tool
