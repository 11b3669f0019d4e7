// SPDX-License-Identifier: Apache-2.0
//
// `stepwell verify`: is everything there, and is every byte as it was written?
#pragma once

#include "tool/console.hpp"

#include <string>

namespace stepwell::tool {

struct verify_options {
  std::string target;  ///< A prefix, or a directory: all checkpoints that its state file lists or that are on its disk.
  bool json = false;
};

/// Reads every tensor of every checkpoint and checks its checksum; one damaged tensor does not hide the next. A tensor whose
/// checksum is not known here (variants, resources) is reported as not checked, and the command then returns `unsupported`, as it
/// does for a checkpoint written for a later reader. Files of a directory that belong to no checkpoint are noted, and are no
/// damage: killed saves leave them, and killed deletions of old checkpoints. Changes nothing.
/// @errors Those of reading. @cost Reads every byte; memory for the index and a piece.
[[nodiscard]] outcome verify(const verify_options& options, console& to);

}  // namespace stepwell::tool
