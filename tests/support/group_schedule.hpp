// SPDX-License-Identifier: Apache-2.0
//
// Random schedules of a training by a group, in a simulation: processes start early and late, are killed, frozen, cut off and replaced,
// start twice, and end the training. The processes train with `group` as a session does.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stepwell::test {

struct schedule_result {
  std::vector<std::string> broken;  ///< The promises that the group broke.
  std::vector<std::string> story;   ///< The events, if they were asked for.
  int finished = 0;                 ///< The number of processes that ended the training.
  int failed = 0;                   ///< The number of processes that ended with an error.
  int generations = 0;
  std::uint64_t points = 0;  ///< The number of scheduling points.
};

/// Runs the schedule of `seed`. The same seed runs the same schedule.
[[nodiscard]] schedule_result run_schedule(std::uint64_t seed, bool with_story = false);

}  // namespace stepwell::test
