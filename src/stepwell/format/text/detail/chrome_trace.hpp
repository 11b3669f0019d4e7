// SPDX-License-Identifier: Apache-2.0
//
// Spans as a timeline that Perfetto and chrome://tracing show: the JSON of Chrome's trace events.
#pragma once

#include "stepwell/base/run_metadata.hpp"

#include <cstdint>
#include <string>

namespace stepwell::format {

struct chrome_trace_options {
  std::int64_t process_id = 1;  ///< Not 0, which viewers take for the idle process.
  std::string process_name = "stepwell";
};

/// A JSON object with one complete event a span, in order of begin, the longer one first, and the names of the process
/// and of the threads. Times are microseconds since `origin`, exact to the nanosecond; `otherData` tells the time of day
/// of the origin, in microseconds since 1970, and how many spans were lost. Arguments are texts; two of one key: the
/// last counts. Texts that are not UTF-8 have their bad bytes replaced.
[[nodiscard]] std::string encode_chrome_trace(const run_metadata& observed, const chrome_trace_options& options = {});

}  // namespace stepwell::format
