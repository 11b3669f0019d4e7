// SPDX-License-Identifier: Apache-2.0
//
// Private: the state file in the directory of the checkpoints. It lists the checkpoints and names the newest one.
#pragma once

#include "stepwell/base/error.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace stepwell::format {

/// The content of the state file. Each path is the prefix of a checkpoint: the common part of the names of its files. A relative path is
/// relative to the directory of the state file.
struct checkpoint_state {
  std::string model_checkpoint_path;                    ///< The newest checkpoint.
  std::vector<std::string> all_model_checkpoint_paths;  ///< All listed checkpoints. The oldest checkpoint is first.
  std::vector<double> all_model_checkpoint_timestamps;  ///< Times of the checkpoints, in seconds since 1970: one for each path, or empty.
  double last_preserved_timestamp = 0;                  ///< Time of the last checkpoint that `keep_every_n_hours` keeps permanently.
  friend bool operator==(const checkpoint_state&, const checkpoint_state&) = default;
};

/// Returns the state as text that TensorFlow reads, with one field per line.
[[nodiscard]] std::string encode(const checkpoint_state& state);

/// Returns the state in `text`. Unknown fields are ignored. Timestamps are dropped if their number differs from the number of paths.
/// @errors `data_loss` if the text does not parse (the message has the line and the column), if the text does not name the newest
///         checkpoint, if it has more than 65,536 paths and timestamps in total, or if a path has more than 4,096 bytes.
/// @cost   Linear time. Allocates at most 12 MiB plus the size of `text`.
[[nodiscard]] result<checkpoint_state> decode_checkpoint_state(std::string_view text);

}  // namespace stepwell::format
