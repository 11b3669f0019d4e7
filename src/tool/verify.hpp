// SPDX-License-Identifier: Apache-2.0
//
// `stepwell verify`: checks that checkpoints are complete and undamaged.
#pragma once

#include "tool/console.hpp"

#include <string>

namespace stepwell::tool {

/// Options of `stepwell verify`.
struct verify_options {
  std::string target;  ///< A prefix, or a directory: all checkpoints listed in its state file or found in it.
  bool json = false;
};

/// Reads every tensor of every checkpoint and checks its checksum, and continues after a damaged tensor. A tensor whose checksum is unknown
/// (variants, resources) is reported as not checked, and the command then returns `unsupported`. It returns the same for a checkpoint
/// written for a later reader. Files of a directory outside of all checkpoints are reported, but do not count as damage: they remain after
/// killed saves, and after killed deletions of old checkpoints. Changes no file.
/// @errors Those of reading.
/// @cost Reads every byte; memory for the index and one piece.
[[nodiscard]] outcome verify(const verify_options& options, console& to);

}  // namespace stepwell::tool
