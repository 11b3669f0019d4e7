// SPDX-License-Identifier: Apache-2.0
//
// One record of an event file: TensorFlow's Event as a plain value, and its encoding.
#pragma once

#include "stepwell/base/result.hpp"
#include "stepwell/format/events/session_status.hpp"
#include "stepwell/format/events/summary.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>

namespace stepwell::format {

/// The file version in the first record of each event file.
inline constexpr std::string_view event_file_version = "brain.Event:2";

/// The version of the file format, in the first record of a file.
struct file_version {
  std::string text;
};

/// A serialized GraphDef.
struct graph_def {
  std::string bytes;
};

/// A serialized MetaGraphDef.
struct meta_graph_def {
  std::string bytes;
};

/// A serialized RunMetadata, for the graph dashboard.
struct tagged_run_metadata {
  std::string tag;
  std::string run_metadata;
};

/// A change of a run's status. A second or later `start` makes viewers discard the events of the run from its step on.
struct session_log {
  session_status status = session_status::unspecified;
  std::string checkpoint_path;
  std::string message;
};

/// A log message. Deprecated: viewers ignore it. The levels are those of TensorFlow, from 10 (debugging) to 50 (fatal).
struct log_message {
  std::int32_t level = 0;
  std::string message;
};

/// One event: a time, a step, and at most one item.
struct event {
  double wall_time = 0;  ///< Time of day in seconds since 1970.
  std::int64_t step = 0;
  std::variant<std::monostate, file_version, graph_def, summary, log_message, session_log, tagged_run_metadata, meta_graph_def> what;
  std::string source_writer;  ///< Name of the library that wrote the file. Set in the first record only.
};

/// Returns the serialized Event message. Fields have ascending numbers, and default values are omitted.
[[nodiscard]] std::string encode_event(const event& happened);

/// Returns the event in a serialized Event message. Unknown fields are ignored.
/// @errors `data_loss` if the bytes are not an Event, and the errors of `decode_summary`.
[[nodiscard]] result<event> decode_event(std::span<const std::byte> bytes);

}  // namespace stepwell::format
