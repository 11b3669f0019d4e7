// SPDX-License-Identifier: Apache-2.0
//
// Internal: reads the state file of a directory of checkpoints and resolves its paths.
#pragma once

#include "stepwell/format/checkpoint/checkpoint_state.hpp"
#include "stepwell/io/file_system.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stepwell::detail {

/// A parsed state file.
struct state_file {
  format::checkpoint_state content;   ///< With the paths of the file, unchanged.
  std::vector<std::string> prefixes;  ///< With the directory, without duplicates, oldest first.
};

/// Returns the state file of a directory. Returns nothing if it does not exist. If it cannot be parsed, logs a warning and returns
/// nothing. Throws other failures of the file system.
[[nodiscard]] std::optional<state_file> read_state_file(io::file_system& files, const std::string& directory);

/// Returns the names of the files in a directory. Returns none if the directory does not exist. Throws other failures, also if
/// `directory` is a file.
[[nodiscard]] std::vector<std::string> names_in(io::file_system& files, const std::string& directory);

/// Returns N if `name` is `basename`-N followed by `suffix`, otherwise nothing.
[[nodiscard]] std::optional<std::int64_t> step_in_name(std::string_view name, std::string_view basename, std::string_view suffix);

}  // namespace stepwell::detail
