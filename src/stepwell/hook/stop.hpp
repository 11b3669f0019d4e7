// SPDX-License-Identifier: Apache-2.0
//
// Reasons why a loop ends.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace stepwell {

/// The kind of reason why the loop ended.
enum class stop_cause {
  none,         ///< The loop has not ended.
  requested,    ///< `request_stop` was called; the text names the caller.
  last_step,    ///< The last requested step is done.
  end_of_data,  ///< The source has no more batches.
  nan,          ///< A watched value is not finite.
  signal,       ///< A signal requested the process to end.
  deadline,     ///< The time limit has expired.
  error,        ///< A failure, which was or will be thrown.
  closed,       ///< The session was closed.
};

[[nodiscard]] constexpr std::string_view to_string(stop_cause cause) noexcept {
  switch (cause) {
    case stop_cause::none: return "none";
    case stop_cause::requested: return "requested";
    case stop_cause::last_step: return "last_step";
    case stop_cause::end_of_data: return "end_of_data";
    case stop_cause::nan: return "nan";
    case stop_cause::signal: return "signal";
    case stop_cause::deadline: return "deadline";
    case stop_cause::error: return "error";
    case stop_cause::closed: return "closed";
  }
  return "none";
}

/// The cause of a stop, and one sentence that describes it.
struct stop_reason {
  stop_cause cause = stop_cause::none;
  std::string text = {};
};

}  // namespace stepwell
