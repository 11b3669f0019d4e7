// SPDX-License-Identifier: Apache-2.0
//
// Functions on one checkpoint, given by its prefix: existence, time of completion, removal.
// @see contract STATE-6
#pragma once

#include "stepwell/base/clock.hpp"

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace stepwell {

namespace io {
class file_system;
}

/// Returns true if the index of the checkpoint `prefix` ("run/model.ckpt-500") exists. Does not open it.
/// @errors Failures of the file system.
[[nodiscard]] bool checkpoint_exists(const std::string& prefix, std::shared_ptr<io::file_system> files = nullptr);

/// Returns the times at which the checkpoints were completed, in the order of `prefixes`. Skips checkpoints that do not exist, so
/// the result may be shorter.
/// @errors Failures of the file system.
[[nodiscard]] std::vector<clock::wall_time> get_checkpoint_mtimes(std::span<const std::string> prefixes,
                                                                  std::shared_ptr<io::file_system> files = nullptr);

/// Deletes a checkpoint: first its index, so that there is never half a checkpoint, then its data and TensorFlow's graph file
/// (".meta"). Does nothing if the checkpoint does not exist. Does not change the state file.
/// @pre    No saver holds the directory. The options of a saver decide which checkpoints it keeps.
/// @errors Failures of the file system when the index is deleted. Other files that cannot be deleted are logged; they are not part
///         of any checkpoint.
void remove_checkpoint(const std::string& prefix, std::shared_ptr<io::file_system> files = nullptr);

}  // namespace stepwell
