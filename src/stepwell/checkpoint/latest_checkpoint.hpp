// SPDX-License-Identifier: Apache-2.0
//
// Which checkpoints a directory holds, and which of them to go on from.
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

/// The name of the state file beside checkpoints.
inline constexpr std::string_view state_file_name = "checkpoint";
/// What checkpoints are called unless told otherwise: "model.ckpt-500".
inline constexpr std::string_view default_checkpoint_basename = "model.ckpt";

/// N of "anything-N"; nothing if the prefix does not end so.
[[nodiscard]] std::optional<std::int64_t> step_of_checkpoint(std::string_view prefix) noexcept;

/// The prefix the state file calls newest, if its index exists; nothing checked beyond that (contract STATE-5).
/// No state file: nothing. One that does not parse, or names what is not there: nothing, and a warning.
/// @errors `permission_denied_error`, and other failures of the file system.
[[nodiscard]] std::optional<std::string> latest_checkpoint(const std::string& directory, std::shared_ptr<io::file_system> files = nullptr);

/// Prefixes of all indexes named `basename`-N in a directory, by rising N; the state file has no say.
[[nodiscard]] std::vector<std::string> list_checkpoints(const std::string& directory,
                                                        std::string_view basename = default_checkpoint_basename,
                                                        std::shared_ptr<io::file_system> files = nullptr);

/// Returns the newest checkpoint that is whole, verified completely. Tried, newest first: unlisted ones saved after the newest listed
/// one (a kill came before the state file was written), listed ones, other unlisted ones. Their `stepwell/save_number` orders unlisted
/// ones; those without it (TensorFlow's) go by step. Each damaged one is passed over with a warning that says what is damaged.
/// Nothing, if the directory does not exist or claims no checkpoint at all.
/// @errors `data_loss_error` naming all of them when there are claims and none is whole: never a silent restart from
///         zero. `permission_denied_error` and the like when the state file or an index cannot be read.
/// @cost   Reads every byte of each one tried, and the index of each unlisted one.
[[nodiscard]] std::optional<checkpoint_reader> find_newest_whole(const std::string& directory,
                                                                 std::string_view basename = default_checkpoint_basename,
                                                                 std::shared_ptr<io::file_system> files = nullptr);

}  // namespace stepwell
