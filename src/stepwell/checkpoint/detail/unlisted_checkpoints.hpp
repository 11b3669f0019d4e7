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

/// Prefixes, with the directory, oldest first.
///
/// The order is that of the save numbers in the checkpoints. A checkpoint without a number, such as one of TensorFlow, comes
/// directly after the highest-numbered checkpoint whose step is not above its own. Modification times are ignored, because copying
/// changes them and clocks are set back.
struct unlisted_checkpoints {
  std::vector<std::string> older;  ///< Older than the newest listed one; all, if there is no state file.
  std::vector<std::string> newer;  ///< Newer; their saves were killed before the state file was written.
  std::int64_t last_number = 0;    ///< The highest save number in both lists; 0 if there is none.
};

/// Returns the save number of the checkpoint `prefix`, or nothing if it has none that can be read.
[[nodiscard]] std::optional<std::int64_t> save_number_of(const std::shared_ptr<io::file_system>& files, const std::string& prefix);

/// Returns the save number of the newest of `prefixes` (sorted oldest first) that has a readable one.
[[nodiscard]] std::optional<std::int64_t> newest_save_number(const std::shared_ptr<io::file_system>& files,
                                                             const std::vector<std::string>& prefixes);

/// Returns the checkpoints `basename`-N that the state file does not list.
/// @errors Failures of the file system while the directory is listed.
/// @cost   One listing of the directory. For each unlisted checkpoint, its index and one tensor.
[[nodiscard]] unlisted_checkpoints find_unlisted(const std::shared_ptr<io::file_system>& files, const std::string& directory,
                                                 std::string_view basename, const std::optional<state_file>& state);

}  // namespace stepwell::detail
