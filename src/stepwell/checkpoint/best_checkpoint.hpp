// SPDX-License-Identifier: Apache-2.0
//
// The best checkpoint of a training run, by a metric. A `best_checkpoint_hook` saves it; this header finds it.
#pragma once

#include "stepwell/io/file_system.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace stepwell {

/// Selects whether lower or higher values of a metric are better.
enum class metric_mode { minimize, maximize };

/// Name of the tensor with the metric, a double, in a checkpoint that a `best_checkpoint_hook` has saved.
inline constexpr std::string_view best_value_name = "stepwell/best/value";
/// Default name of the directory of the best checkpoints, in the directory of the run.
inline constexpr std::string_view default_best_name = "best";

/// A checkpoint, and the metric for which it was saved.
struct scored_checkpoint {
  std::string prefix;  ///< With the directory: "run/best/model.ckpt-500".
  std::int64_t step = 0;
  double value = 0;
};

/// Returns the best checkpoint of the run in `directory`: the newest complete one in `directory/name`, because a `best_checkpoint_hook` saves
/// only states that are better than all before. The metric is part of the checkpoint, so both exist or neither. Returns nothing if
/// there is none. Checks the index and the file sizes, like `open_newest`.
/// Example: `if (auto best = best_checkpoint("run")) { evaluate_once(model, best->prefix, test_set); }`
/// @errors `data_loss_error` if all checkpoints in `directory/name` are damaged. Failures of the file system.
[[nodiscard]] std::optional<scored_checkpoint> best_checkpoint(const std::string& directory, std::string_view name = default_best_name,
                                                               std::shared_ptr<io::file_system> files = nullptr);

}  // namespace stepwell
