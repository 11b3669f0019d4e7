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

/// Options of `stepwell prune`.
struct prune_options {
  std::string directory;
  std::string basename = "model.ckpt";
  int max_to_keep = 5;  ///< Number of the newest checkpoints to keep; 0: all.
  std::optional<double> keep_every_n_hours = {};
  std::size_t keep_best = 0;  ///< Number of checkpoints with the best reported metric to keep; 0: ignore the metric.
  bool higher_is_better = false;
  std::vector<std::string> pinned = {};  ///< Prefixes or names that are never deleted.
  bool yes = false;                      ///< Delete; false: only report.
  bool json = false;
};

/// Reports the decision about each checkpoint, and with `yes` deletes those that the rules do not keep. The newest complete checkpoint is
/// always kept. So are checkpoints that were not written by a saver of this library. Leftovers of killed saves are deleted, too. Without
/// `yes`, no file is changed, locked or created.
/// @errors `not_found_error` if there is no checkpoint; `failed_precondition_error` that names the owner if a process holds the directory
///   (with `yes`); `data_loss_error` if all of its checkpoints are damaged, in which case nothing is deleted; those of the file system.
/// @cost   Reads every byte of the newest checkpoint.
[[nodiscard]] outcome prune(const prune_options& options, console& to);

}  // namespace stepwell::tool
