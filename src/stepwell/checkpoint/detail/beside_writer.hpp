// SPDX-License-Identifier: Apache-2.0
//
// Internal: the rule for all readers of a directory in which another process may save and delete checkpoints at any moment.
//
// A saver adds the files of a checkpoint in the order: data, index, name in the state file. Retention removes them in the order: index, name
// in the state file, data. It never deletes the newest listed checkpoint. Therefore:
//
// * A checkpoint exists as long as it has an index. A reader that has opened the index and all data files can read them to the end, also after
//   their deletion.
// * A failure to open a checkpoint means damage only if the index is the same before and after it. If the index has gone, the checkpoint was
//   deleted, which is no fact about the directory: the reader reads the directory again.
// * A listed checkpoint without an index is missing only if the directory lists it again after its index was found to be missing. Only
//   checkpoints that are still listed and still exist are judged.
#pragma once

#include "stepwell/io/file_system.hpp"

#include <optional>
#include <string>
#include <utility>

namespace stepwell::detail {

/// Throws `unavailable_error`: the checkpoints of `directory` are deleted faster than they can be opened.
[[noreturn]] void throw_always_changing(const std::string& directory);

/// Calls `read` until it returns a value, and returns this value. `read` reads the directory from the beginning, and returns nothing if
/// something that it found was deleted or replaced before it was opened.
/// @errors Those of `read`. `unavailable_error` after a thousand calls.
template<class Read>
auto read_beside_writer(const std::string& directory, Read read) {
  constexpr int most_readings = 1000;
  for (int i = 0; i < most_readings; ++i) {
    if (auto found = read()) { return *std::move(found); }
  }
  throw_always_changing(directory);
}

/// The checkpoint that a state file names as the newest.
struct newest_listed {
  std::string prefix;   ///< With the directory.
  bool exists = false;  ///< False if it has no index, although the state file still lists it.
};

/// Returns the newest checkpoint in the state file. Returns nothing if there is no state file, or if it cannot be parsed.
/// @errors Failures of the file system.
[[nodiscard]] std::optional<newest_listed> find_newest_listed(io::file_system& files, const std::string& directory);

}  // namespace stepwell::detail
