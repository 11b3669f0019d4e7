// SPDX-License-Identifier: Apache-2.0
//
// Internal: selects the checkpoints to keep. A pure function; the files are deleted elsewhere.
#pragma once

#include "stepwell/checkpoint/saver_options.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace stepwell::detail {

/// A listed checkpoint with the properties that retention needs.
struct listed_checkpoint {
  std::string name;  ///< Without the directory, unless the checkpoint is in another directory.
  std::int64_t step = 0;
  double time = 0;            ///< Seconds since the epoch.
  bool is_ours = false;       ///< Written by a saver of this library. Other checkpoints are never deleted.
  bool is_protected = false;  ///< Pinned, or restored from.
  bool is_kept = false;       ///< Its files are kept permanently; listed only while it is the newest.
  std::optional<double> metric = std::nullopt;
  std::optional<double> durable_metric = std::nullopt;  ///< The value in the metrics file.
};

/// The retention options of a saver.
struct retention_rules {
  std::optional<std::size_t> max_to_keep;  ///< Empty: keep all.
  std::optional<double> keep_every_n_hours;
  std::optional<keep_best> best;
};

/// Result of retention, each list oldest first. A checkpoint of the input that is in neither list is removed from the list, and its
/// files are kept permanently.
struct retention_plan {
  std::vector<listed_checkpoint> listed;
  std::vector<listed_checkpoint> deleted;
  double last_preserved = 0;
};

/// Returns the checkpoints to keep in the list and the checkpoints to delete. `list` is sorted oldest first; its last element, the
/// newest, is always kept. `last_preserved` is the time of the last checkpoint that was kept because of `keep_every_n_hours`.
/// Keeps the best checkpoints by the reported metrics, and also the best by the durable metrics, because only those are known after
/// a kill.
[[nodiscard]] retention_plan plan_retention(const std::vector<listed_checkpoint>& list, const retention_rules& rules,
                                            double last_preserved);

}  // namespace stepwell::detail
