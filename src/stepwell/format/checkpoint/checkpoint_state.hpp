// SPDX-License-Identifier: Apache-2.0
//
// The state file beside checkpoints: which there are, and which is newest.
#pragma once

#include "stepwell/base/result.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace stepwell::format {

/// What the state file says. Paths are prefixes, oldest first; relative ones are relative to the file's directory.
struct checkpoint_state {
  std::string model_checkpoint_path;
  std::vector<std::string> all_model_checkpoint_paths;
  std::vector<double> all_model_checkpoint_timestamps;  ///< Seconds since the epoch; none, or one a path.
  double last_preserved_timestamp = 0;
  friend bool operator==(const checkpoint_state&, const checkpoint_state&) = default;
};

/// Text that TensorFlow reads, one field a line.
[[nodiscard]] std::string encode(const checkpoint_state& state);

/// Unknown fields are passed over. Timestamps that do not match the paths in number are dropped.
/// @errors `data_loss`, with line and column, for text that does not parse, or names no newest checkpoint; without for more than
///         65,536 paths and times, or a path of more than 4,096 bytes.
/// @cost   Linear; memory of at most 12 MiB and its size besides `text`.
[[nodiscard]] result<checkpoint_state> decode_checkpoint_state(std::string_view text);

}  // namespace stepwell::format
