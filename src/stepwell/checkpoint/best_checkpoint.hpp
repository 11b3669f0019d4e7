// SPDX-License-Identifier: Apache-2.0
//
// The best checkpoint of a training run, by a metric. A `best_checkpoint_hook` saves it, and the function `best_checkpoint` finds it.
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

/// Name of the tensor that contains the metric, a double. Each checkpoint of a `best_checkpoint_hook` has this tensor.
inline constexpr std::string_view best_value_name = "stepwell/best/value";
/// Default name of the subdirectory, in the directory of the run, that contains the best checkpoints.
inline constexpr std::string_view default_best_name = "best";

/// A checkpoint, and the value of the metric in the saved state.
struct scored_checkpoint {
  std::string prefix;  ///< With the directory: "run/best/model.ckpt-500".
  std::int64_t step = 0;
  double value = 0;
};

/// Returns the best checkpoint of the run in `directory`, or `nullopt` if there is none. It is the newest complete checkpoint in
/// `directory/name`, because a `best_checkpoint_hook` saves a state only if it is better than all states saved before. Reads the
/// metric from the checkpoint. Like `open_newest`, checks the index and the file sizes of the checkpoint. Verifies the checksum of the
/// metric, but not those of the other tensors.
/// Example: `if (auto best = best_checkpoint("run")) { evaluate_once(model, best->prefix, test_set); }`
/// @errors `data_loss_error` if `directory/name` has checkpoints, and all of them are damaged or have no metric. Failures of the file
///         system.
[[nodiscard]] std::optional<scored_checkpoint> best_checkpoint(const std::string& directory, std::string_view name = default_best_name,
                                                               std::shared_ptr<io::file_system> files = nullptr);

}  // namespace stepwell
