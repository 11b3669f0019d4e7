// SPDX-License-Identifier: Apache-2.0
//
// Text and JSON for the contents of events.
#pragma once

#include "stepwell/format/events/event.hpp"
#include "tool/json.hpp"

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace stepwell::tool {

/// Returns the kind of the event: "file_version", "summary", "session_log", ...; "nothing" for an empty event.
[[nodiscard]] std::string_view what_of(const format::event& happened) noexcept;

/// The kinds of values by tag. In the current format only the first value of a tag contains the kind, so it is stored.
class value_kinds {
public:
  /// Returns "scalar", "histogram", "image", "audio", "text", "hparams", the name of another plugin, or "tensor".
  [[nodiscard]] std::string of(const format::summary_value& value);

private:
  std::map<std::string, std::string, std::less<>> plugins_;  // by tag
};

/// Returns the number if the value is a scalar: in the old format, or a tensor of one element.
[[nodiscard]] std::optional<double> scalar_of(const format::summary_value& value);

/// Returns the hyper-parameters of a run as printable texts, by name. Empty if the value has none.
[[nodiscard]] std::map<std::string, std::string> settings_of(const format::summary_value& value);

/// Returns one line of printable text: "0.25", "-1.5 to 2 (1000 values)", "28x28, 285 B".
[[nodiscard]] std::string value_text(const format::summary_value& value);
/// Returns one line of printable text for an event that is not a summary.
[[nodiscard]] std::string event_text(const format::event& happened);

/// Returns the value of a summary: a number, a text, or an object that describes it. Images, sounds and graphs are described by their sizes.
/// At most the first 1000 elements of a tensor are included.
[[nodiscard]] json value_json(const format::summary_value& value);
/// Returns an event that is not a summary: its whole text, or an object with its parts or its size.
[[nodiscard]] json event_json(const format::event& happened);

}  // namespace stepwell::tool
