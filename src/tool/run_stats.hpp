// SPDX-License-Identifier: Apache-2.0
//
// `stepwell stats`: how a run stands, from its directory alone.
#pragma once

#include "tool/console.hpp"

#include <string>
#include <vector>

namespace stepwell::tool {

struct run_stats_options {
  std::string directory;
  bool json = false;
};

/// Checkpoints with steps, sizes and times; event files; the last step; steps a second over time; bytes on the disk.
/// Only the indexes of checkpoints are looked for, not read. Event files are read through.
/// @errors Those of reading; `not_found_error` if there is no such directory.
[[nodiscard]] outcome run_stats(const run_stats_options& options, console& to);

/// Numbers as a line of little bars, the greatest as a full one; 0 as a blank.
[[nodiscard]] std::string spark_line(const std::vector<double>& values);

}  // namespace stepwell::tool
