// SPDX-License-Identifier: Apache-2.0
//
// Observations of runs and of background work: TensorFlow's RunMetadata as a plain value.
#pragma once

#include "stepwell/base/clock.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace stepwell {

/// A named detail of a span, shown to users.
struct trace_argument {
  std::string key;
  std::string text;

  friend bool operator==(const trace_argument&, const trace_argument&) = default;
};

/// One span of time that a thread spent on one activity.
struct trace_event {
  std::string name;
  std::string category;
  std::uint32_t thread_id = 0;  ///< See `current_thread_id`.
  std::string thread_name;
  clock::time_point begin;
  clock::time_point end;
  std::vector<trace_argument> arguments = {};

  friend bool operator==(const trace_event&, const trace_event&) = default;
};

/// The spans that a recorder collected.
struct run_metadata {
  std::vector<trace_event> spans;  ///< Spans in the order in which they ended.
  clock::time_point origin;        ///< An instant at or before the begin of the first span.
  clock::wall_time wall_origin;    ///< The time of day at `origin`.
  std::size_t lost = 0;            ///< Number of spans dropped because a limit or the memory was exhausted.
};

}  // namespace stepwell
