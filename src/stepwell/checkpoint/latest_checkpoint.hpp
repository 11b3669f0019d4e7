// SPDX-License-Identifier: Apache-2.0
//
// Functions that list the checkpoints of a directory and select the one to resume from.
#pragma once

#include "stepwell/checkpoint/checkpoint_reader.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stepwell {

namespace io {
class file_system;
}

/// Name of the state file in a directory of checkpoints.
inline constexpr std::string_view state_file_name = "checkpoint";
/// Default basename of checkpoints: "model.ckpt-500".
inline constexpr std::string_view default_checkpoint_basename = "model.ckpt";

/// Returns N of "anything-N", or nothing if `prefix` does not end in this way.
[[nodiscard]] std::optional<std::int64_t> step_of_checkpoint(std::string_view prefix) noexcept;

/// Returns the newest checkpoint according to the state file, if its index exists. Checks nothing else. Returns nothing without a
/// state file. If the state file cannot be parsed or names a checkpoint that does not exist, logs a warning and returns nothing.
/// @errors `permission_denied_error` and other failures of the file system.
/// @see    contract STATE-5
[[nodiscard]] std::optional<std::string> latest_checkpoint(const std::string& directory, std::shared_ptr<io::file_system> files = nullptr);

/// Returns the prefixes of all indexes `basename`-N in a directory, sorted by N. Ignores the state file.
[[nodiscard]] std::vector<std::string> list_checkpoints(const std::string& directory,
                                                        std::string_view basename = default_checkpoint_basename,
                                                        std::shared_ptr<io::file_system> files = nullptr);

/// Returns the newest complete checkpoint, after a check of all its checksums. Returns nothing if the directory does not exist or
/// contains no checkpoint.
/// Candidates are tried from newest to oldest: first unlisted checkpoints that are newer than the newest listed one (their process
/// was killed before it wrote the state file), then listed ones, then the other unlisted ones. Unlisted checkpoints are ordered by
/// their tensor `stepwell/save_number`. Checkpoints without this tensor (written by TensorFlow) are ordered by step. Each damaged
/// checkpoint is skipped with a warning that describes the damage.
/// @errors `data_loss_error` naming the candidates (at most 20) if all of them are damaged or missing; training never restarts
///         silently from step zero. `resource_exhausted_error` if they could not be read because memory was short.
///         `permission_denied_error` and other failures of the file system if the state file or an index cannot be read.
/// @cost   Reads every byte of each candidate tried, and the index of each unlisted checkpoint.
[[nodiscard]] std::optional<checkpoint_reader> find_newest_whole(const std::string& directory,
                                                                 std::string_view basename = default_checkpoint_basename,
                                                                 std::shared_ptr<io::file_system> files = nullptr);

}  // namespace stepwell
