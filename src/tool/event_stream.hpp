// SPDX-License-Identifier: Apache-2.0
//
// Reads all events of a file, and reports damage.
#pragma once

#include "stepwell/base/error.hpp"
#include "stepwell/summary/detail/event_stream.hpp"
#include "tool/output.hpp"

#include <cstdint>
#include <string>
#include <utility>

namespace stepwell::tool {

using summary::event_stream;
using summary::large_records;

constexpr int most_reports = 8;  ///< Maximum number of damaged records of a file that are reported one by one.

/// Calls `act` with each remaining event that can be decoded, and `report` with the description of each record that cannot.
template<class Act, class Report>
void each_event_and_damage(event_stream& stream, Act act, Report report) {
  while (!stream.is_lost()) {
    try {
      const auto happened = stream.next();
      if (!happened) { return; }
      act(*happened);
    } catch (const data_loss_error& damage) { report(std::string(damage.what())); }
  }
}

/// Calls `act` with each remaining event. Reports damage on the error stream, and returns `damaged` then.
template<class Act>
[[nodiscard]] exit_code each_event(event_stream& stream, console& to, Act act) {
  std::uint64_t reports = 0;
  each_event_and_damage(stream, std::move(act), [&](const std::string& what) {
    if (++reports <= most_reports || stream.is_lost()) { print_error(to, what + (stream.is_lost() ? "" : "; the record is skipped")); }
  });
  if (reports > most_reports) { print_error(to, stream.path() + ": " + count_text(reports, "record") + " could not be read in all"); }
  return reports == 0 ? exit_code::good : exit_code::damaged;
}

}  // namespace stepwell::tool
