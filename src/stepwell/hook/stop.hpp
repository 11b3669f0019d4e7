// SPDX-License-Identifier: Apache-2.0
//
// Why a loop ends.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace stepwell {

/// Who or what ended the loop.
enum class stop_cause {
  none,         ///< It has not ended.
  requested,    ///< Somebody called `request_stop`; the text says who.
  last_step,    ///< The last step wanted is done.
  end_of_data,  ///< The source has no more batches.
  nan,          ///< A watched value is not finite.
  signal,       ///< The process was asked to end.
  deadline,     ///< The time is up.
  error,        ///< A failure; it was or will be thrown.
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

/// The cause, and one sentence about it.
struct stop_reason {
  stop_cause cause = stop_cause::none;
  std::string text = {};
};

}  // namespace stepwell
