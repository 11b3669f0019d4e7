// SPDX-License-Identifier: Apache-2.0
//
// What was observed of some runs and of the work in the background: TensorFlow's RunMetadata as a plain value.
#pragma once

#include "stepwell/base/clock.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace stepwell {

/// A detail of a span, for people.
struct trace_argument {
  std::string key;
  std::string text;

  friend bool operator==(const trace_argument&, const trace_argument&) = default;
};

/// One span of time in which a thread did one thing.
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

struct run_metadata {
  std::vector<trace_event> spans;  ///< In the order in which they ended.
  clock::time_point origin;        ///< An instant at or before the first span,
  clock::wall_time wall_origin;    ///< and the same instant as time of day.
  std::size_t lost = 0;            ///< Spans that found no room.
};

}  // namespace stepwell
