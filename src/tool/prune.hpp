// SPDX-License-Identifier: Apache-2.0
//
// `stepwell prune`: deletes the checkpoints that a saver with these rules would delete.
#pragma once

#include "tool/console.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace stepwell::tool {

struct prune_options {
  std::string directory;
  std::string basename = "model.ckpt";
  int max_to_keep = 5;  ///< 0: all.
  std::optional<double> keep_every_n_hours = {};
  std::size_t keep_best = 0;  ///< So many with the best reported metric; 0: the metric has no say.
  bool higher_is_better = false;
  std::vector<std::string> pinned = {};  ///< Prefixes or names never to delete.
  bool yes = false;                      ///< Do it; else only say it.
  bool json = false;
};

/// Says what becomes of each checkpoint, and with `yes` deletes what is past keeping. The newest whole one stays whatever
/// the rules say, as does what no saver of this library wrote. What killed saves left behind goes, too.
/// Without `yes` nothing is changed, locked or made.
/// @errors `failed_precondition_error` naming the holder if a process has the directory (with `yes`), `data_loss_error` if
///         none of its checkpoints is whole: then nothing is deleted; those of the disk.
/// @cost   Reads every byte of the newest.
[[nodiscard]] outcome prune(const prune_options& options, console& to);

}  // namespace stepwell::tool
