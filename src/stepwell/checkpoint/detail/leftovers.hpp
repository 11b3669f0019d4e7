// SPDX-License-Identifier: Apache-2.0
//
// Internal: finds and removes the files that killed saves left in a directory.
#pragma once

#include "stepwell/io/file_system.hpp"

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace stepwell::detail {

/// The parts of a data file name: "model.ckpt-3.data-00000-of-00001".
struct data_file_name {
  std::string_view prefix;  ///< Without the directory.
  std::int32_t shards = 0;
};
/// Returns the parts of `name`, or nothing if it is not the name of a data file.
[[nodiscard]] std::optional<data_file_name> parse_data_name(std::string_view name) noexcept;

/// Returns the files among `names` that killed saves left: temporary files, and data files of `basename`-N whose index is missing
/// or specifies another number of shards. Excludes the data of the prefixes in `claimed`, whose index should exist.
[[nodiscard]] std::vector<std::string> find_leftovers(io::file_system& files, const std::string& directory, std::string_view basename,
                                                      const std::vector<std::string>& names,
                                                      const std::set<std::string, std::less<>>& claimed);

/// Removes the leftovers and logs their names in one warning. Logs files that cannot be removed and leaves them in place.
void sweep_leftovers(io::file_system& files, const std::string& directory, const std::vector<std::string>& leftovers);

/// Returns the least number of shards from `wanted` on for which `prefix` has no data file in `names`. So the data of a new
/// checkpoint never overwrites the data of an older one with the same name. The older one stays complete until the new index
/// exists.
[[nodiscard]] std::int32_t free_shard_count(const std::vector<std::string>& names, std::string_view prefix, std::int32_t wanted);

/// Removes the data files of `prefix`, except those with `kept` shards (0: removes all). Logs failures.
void remove_data_files(io::file_system& files, const std::string& directory, const std::vector<std::string>& names, std::string_view prefix,
                       std::int32_t kept);

}  // namespace stepwell::detail
