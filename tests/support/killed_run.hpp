// SPDX-License-Identifier: Apache-2.0
//
// Constants of the program train_and_be_killed, shared with the test that kills it.
#pragma once

#include <cstdint>

namespace stepwell::test::killed_run {

inline constexpr std::int64_t save_steps = 3;
inline constexpr int max_to_keep = 2;
inline constexpr const char* tag = "count";

/// Returns the metric of a step. It is different for each of the first 10007 steps.
[[nodiscard]] inline double metric_of(std::int64_t step) { return static_cast<double>(step * 5003 % 10007); }

}  // namespace stepwell::test::killed_run
