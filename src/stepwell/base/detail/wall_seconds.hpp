// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "stepwell/base/clock.hpp"

#include <chrono>

namespace stepwell::detail {

/// Returns a time of day in seconds since 1970.
[[nodiscard]] inline double wall_seconds(clock::wall_time when) { return std::chrono::duration<double>(when.time_since_epoch()).count(); }

}  // namespace stepwell::detail
