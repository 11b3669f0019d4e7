// SPDX-License-Identifier: Apache-2.0
//
// Internal: conversion of a wait in seconds to a duration or a time of the clock.
#pragma once

#include "stepwell/base/clock.hpp"
#include "stepwell/base/setting.hpp"

#include <algorithm>
#include <chrono>

namespace stepwell::detail {

/// Returns `wait` as a duration, rounded up to the clock's ticks. Returns zero for a negative wait. Returns `duration::max()`, a wait
/// without end, for 100 years or more: the sum of a time and such a wait would overflow the clock's ticks.
[[nodiscard]] inline clock::duration as_duration(seconds_value wait) noexcept {
  constexpr std::chrono::duration<double> far = std::chrono::hours(24 * 365 * 100);
  if (!(wait.duration() < far)) { return clock::duration::max(); }
  return std::chrono::ceil<clock::duration>(std::max(wait.duration(), std::chrono::duration<double>::zero()));
}

/// Returns `start` plus `wait`, or `time_point::max()` for a wait without end.
[[nodiscard]] inline clock::time_point time_after(clock::time_point start, seconds_value wait) noexcept {
  const auto length = as_duration(wait);
  return length == clock::duration::max() ? clock::time_point::max() : start + length;
}

}  // namespace stepwell::detail
