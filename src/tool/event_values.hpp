// SPDX-License-Identifier: Apache-2.0
//
// What an event holds, said in a word, a line, or JSON.
#pragma once

#include "stepwell/format/events/event.hpp"
#include "tool/json_writer.hpp"

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace stepwell::tool {

/// "file_version", "summary", "session_log", ...; "nothing" for an event without any.
[[nodiscard]] std::string_view what_of(const format::event& happened) noexcept;

/// Which kind of values a tag has. New-style values say so only in the first of a tag, so it is remembered.
class value_kinds {
public:
  /// "scalar", "histogram", "image", "audio", "text", "hparams", the name of another plugin, or "tensor".
  [[nodiscard]] std::string of(const format::summary_value& value);

private:
  std::map<std::string, std::string, std::less<>> plugins_;  // by tag
};

/// The number, if the value is one: old style, or a tensor of one element.
[[nodiscard]] std::optional<double> scalar_of(const format::summary_value& value);

/// One line: "0.25", "-1.5 to 2 (1000 values)", "28x28, 285 B". Printable.
[[nodiscard]] std::string value_text(const format::summary_value& value);
/// The same of an event that is no summary.
[[nodiscard]] std::string event_text(const format::event& happened);

/// Writes the value of a summary: a number, a text, or an object that describes it. Pictures, sounds and graphs are told by their sizes; of a
/// tensor's elements the first 1000 are there.
void write_value(json_writer& json, const format::summary_value& value);
/// Writes an event that is no summary: its whole text, or an object with its parts or its size.
void write_event(json_writer& json, const format::event& happened);

}  // namespace stepwell::tool
