// SPDX-License-Identifier: Apache-2.0
//
// Encoding of spans in the JSON format of Chrome's trace events, for Perfetto and chrome://tracing.
#pragma once

#include "stepwell/base/run_metadata.hpp"

#include <cstdint>
#include <string>

namespace stepwell::format {

/// The process in which viewers show the spans.
struct chrome_trace_options {
  std::int64_t process_id = 1;  ///< Must differ from 0, because viewers treat 0 as the idle process.
  std::string process_name = "stepwell";
};

/// Returns a JSON object with the names of the process and the threads, and one complete event for each span. The events are in order of
/// their begin; of events with the same begin, the longer one comes first. Times are in microseconds since `origin`, with nanosecond
/// precision. `otherData` has the time of day of the origin, in microseconds since 1970, and the number of lost spans. Arguments are
/// strings. If two arguments of a span have the same key, the last one is written. Invalid UTF-8 bytes are replaced by U+FFFD.
[[nodiscard]] std::string encode_chrome_trace(const run_metadata& observed, const chrome_trace_options& options = {});

}  // namespace stepwell::format
