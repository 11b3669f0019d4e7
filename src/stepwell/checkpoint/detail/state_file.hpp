// SPDX-License-Identifier: Apache-2.0
//
// Internal: the state file of a directory of checkpoints, with paths that can be opened.
#pragma once

#include "stepwell/format/checkpoint/checkpoint_state.hpp"
#include "stepwell/io/file_system.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stepwell::detail {

/// A state file that was there and parsed.
struct state_file {
  format::checkpoint_state content;   ///< With paths as they stand in the file.
  std::vector<std::string> prefixes;  ///< With the directory, oldest first, the newest last, each once.
};

/// Nothing without one, or, after a warning, with one that does not parse. Throws other failures of the file system.
[[nodiscard]] std::optional<state_file> read_state_file(io::file_system& files, const std::string& directory);

/// The names in a directory; none if there is no directory. Throws other failures, also where it is a file.
[[nodiscard]] std::vector<std::string> names_in(io::file_system& files, const std::string& directory);

/// N, if `name` is `basename`-N followed by `suffix`.
[[nodiscard]] std::optional<std::int64_t> step_in_name(std::string_view name, std::string_view basename, std::string_view suffix);

}  // namespace stepwell::detail
