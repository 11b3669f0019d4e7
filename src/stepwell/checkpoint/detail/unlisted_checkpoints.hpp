// SPDX-License-Identifier: Apache-2.0
//
// Internal: complete checkpoints in a directory that its state file does not list, in the order in which they were saved.
#pragma once

#include "stepwell/checkpoint/detail/state_file.hpp"
#include "stepwell/io/file_system.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stepwell::detail {

/// Prefixes with the directory, oldest first.
///
/// The order is that of the save numbers in the checkpoints. One without a number, such as TensorFlow's, stands right after
/// the highest-numbered one whose step is not above its own. Modification times have no influence: copies change them, and
/// clocks are set back.
struct unlisted_checkpoints {
  std::vector<std::string> older;  ///< Than the newest listed one; all of them without a state file.
  std::vector<std::string> newer;  ///< Their saves were killed before the state file was written.
  std::int64_t last_number = 0;    ///< The highest save number of all these; 0 if none has one.
};

/// Returns the number of the save that wrote `prefix`, if it has one that can be read.
[[nodiscard]] std::optional<std::int64_t> save_number_of(const std::shared_ptr<io::file_system>& files, const std::string& prefix);

/// Returns the number of the newest of `prefixes` (oldest first) that has one which can be read.
[[nodiscard]] std::optional<std::int64_t> newest_save_number(const std::shared_ptr<io::file_system>& files,
                                                             const std::vector<std::string>& prefixes);

/// Returns the unlisted ones among the checkpoints `basename`-N.
/// @errors Failures of the file system while listing the directory.
/// @cost   One listing of the directory; for each unlisted one, its index and one tensor.
[[nodiscard]] unlisted_checkpoints find_unlisted(const std::shared_ptr<io::file_system>& files, const std::string& directory,
                                                 std::string_view basename, const std::optional<state_file>& state);

}  // namespace stepwell::detail
