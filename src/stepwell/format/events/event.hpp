// SPDX-License-Identifier: Apache-2.0
//
// One record of an event file: TensorFlow's Event as a plain value.
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

/// What the first record of a file says.
inline constexpr std::string_view event_file_version = "brain.Event:2";

struct file_version {
  std::string text;
};

/// The bytes of a GraphDef.
struct graph_def {
  std::string bytes;
};

/// The bytes of a MetaGraphDef.
struct meta_graph_def {
  std::string bytes;
};

/// The bytes of a RunMetadata, for the graph dashboard.
struct tagged_run_metadata {
  std::string tag;
  std::string run_metadata;
};

/// A landmark of a run. A second or later `start` makes viewers drop what the run had at its step and beyond.
struct session_log {
  session_status status = session_status::unspecified;
  std::string checkpoint_path;
  std::string message;
};

/// Deprecated; viewers pass over it. Levels as TensorFlow numbers them: 10 debugging to 50 fatal.
struct log_message {
  std::int32_t level = 0;
  std::string message;
};

struct event {
  double wall_time = 0;  ///< Seconds since 1970.
  std::int64_t step = 0;
  std::variant<std::monostate, file_version, graph_def, summary, log_message, session_log, tagged_run_metadata, meta_graph_def> what;
  std::string source_writer;  ///< Who wrote the file; in the first record only.
};

/// The bytes of an Event message: ascending field numbers, defaults left out.
[[nodiscard]] std::string encode_event(const event& happened);

/// The other way; fields nobody knows are passed over.
/// @errors `data_loss`: not an Event; see also `decode_summary`.
[[nodiscard]] result<event> decode_event(std::span<const std::byte> bytes);

}  // namespace stepwell::format
