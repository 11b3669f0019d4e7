// SPDX-License-Identifier: Apache-2.0
//
// Encodings of spans: TensorFlow's RunMetadata, for event files, and Chrome's trace events in JSON, for Perfetto and chrome://tracing.
#pragma once

#include "stepwell/base/trace.hpp"

#include <string>
#include <string_view>

namespace stepwell::format {

/// TensorFlow's name of the CPU of this process.
inline constexpr std::string_view this_device = "/job:localhost/replica:0/task:0/device:CPU:0";

/// Returns a serialized RunMetadata message. It has one node of `device` for each span, in the order of `observed`, with times of day.
/// Invalid UTF-8 bytes are replaced by U+FFFD. Equal spans give equal bytes.
[[nodiscard]] std::string encode_run_metadata(const run_metadata& observed, std::string_view device = this_device);

/// Returns a JSON object with the names of the process and the threads, and one complete event for each span. The events are in order of
/// their begin; of events with the same begin, the longer one comes first. Times are in microseconds since `origin`, with nanosecond
/// precision. `otherData` has the time of day of the origin, in microseconds since 1970, and the number of lost spans. Arguments are
/// strings. If two arguments of a span have the same key, the last one is written. Invalid UTF-8 bytes are replaced by U+FFFD.
[[nodiscard]] std::string encode_chrome_trace(const run_metadata& observed);

}  // namespace stepwell::format
