// SPDX-License-Identifier: Apache-2.0
//
// Internal: which checkpoints stay. A pure decision; deleting is done elsewhere.
#pragma once

#include "stepwell/checkpoint/saver_options.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace stepwell::detail {

/// One listed checkpoint, as retention sees it.
struct listed_checkpoint {
  std::string name;  ///< Without the directory, unless it lies in another one.
  std::int64_t step = 0;
  double time = 0;            ///< Seconds since the epoch.
  bool is_ours = false;       ///< Written by a saver of this library; else it is never deleted.
  bool is_protected = false;  ///< Pinned, or the one restored from.
  bool is_kept = false;       ///< Its files stay for good; it is listed only as long as it is the newest.
  std::optional<double> metric = std::nullopt;
  std::optional<double> durable_metric = std::nullopt;  ///< The value that is known after a kill.
};

struct retention_rules {
  std::optional<std::size_t> max_to_keep;  ///< None: all stay.
  std::optional<double> keep_every_n_hours;
  std::optional<keep_best> best;
};

/// What becomes of a list; oldest first in all three. What is in none of them is forgotten: its files stay for good.
struct retention_plan {
  std::vector<listed_checkpoint> listed;
  std::vector<listed_checkpoint> deleted;
  double last_preserved = 0;
};

/// The best by the reported metrics stay, and the best by the durable ones, which are known after a kill.
/// `list` is oldest first; its last one, the newest, always stays. `last_preserved` is when the last one was that
/// `keep_every_n_hours` kept.
[[nodiscard]] retention_plan plan_retention(const std::vector<listed_checkpoint>& list, const retention_rules& rules,
                                            double last_preserved);

}  // namespace stepwell::detail
