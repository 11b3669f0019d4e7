// SPDX-License-Identifier: Apache-2.0
//
// Internal: a wait in seconds as a duration, and a time, of the clock's.
#pragma once

#include "stepwell/base/clock.hpp"
#include "stepwell/base/setting.hpp"

#include <algorithm>
#include <chrono>

namespace stepwell::detail {

/// Not shorter than `wait`; without end for a hundred years, which never come, and do not fit into the clock's ticks together
/// with a time. A negative wait is none.
[[nodiscard]] inline clock::duration as_duration(seconds_value wait) noexcept {
  constexpr std::chrono::duration<double> far = std::chrono::hours(24 * 365 * 100);
  if (!(wait.duration() < far)) { return clock::duration::max(); }
  return std::chrono::ceil<clock::duration>(std::max(wait.duration(), std::chrono::duration<double>::zero()));
}

/// `start` and so much more; the end of time for a wait without end.
[[nodiscard]] inline clock::time_point time_after(clock::time_point start, seconds_value wait) noexcept {
  const auto length = as_duration(wait);
  return length == clock::duration::max() ? clock::time_point::max() : start + length;
}

}  // namespace stepwell::detail
