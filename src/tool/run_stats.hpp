// SPDX-License-Identifier: Apache-2.0
//
// `stepwell stats`: shows the state of a run, from the files in its directory.
#pragma once

#include "tool/console.hpp"

#include <string>
#include <vector>

namespace stepwell::tool {

/// Options of `stepwell stats`.
struct run_stats_options {
  std::string directory;
  bool json = false;
};

/// Shows checkpoints with steps, sizes and times; event files; the last step; steps per second over time; and bytes on the disk.
/// Checkpoints are found by the names of their index files; they are opened only if there is no state file, to find the newest. Event files
/// are read completely.
/// @errors Those of reading; `not_found_error` if the directory is missing, or if it lacks both checkpoints and event files.
[[nodiscard]] outcome run_stats(const run_stats_options& options, console& to);

/// Returns a line of bars with heights proportional to `values`. The greatest value has a full bar; 0 is a blank.
[[nodiscard]] std::string spark_line(const std::vector<double>& values);

}  // namespace stepwell::tool
