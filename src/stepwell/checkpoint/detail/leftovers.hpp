// SPDX-License-Identifier: Apache-2.0
//
// Internal: files of a directory that belong to a checkpoint, and those that killed saves left behind.
#pragma once

#include "stepwell/io/file_system.hpp"

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace stepwell::detail {

/// What the name of a data file says: "model.ckpt-3.data-00000-of-00001".
struct data_file_name {
  std::string_view prefix;  ///< Without the directory.
  std::int32_t shards = 0;
};
[[nodiscard]] std::optional<data_file_name> parse_data_name(std::string_view name) noexcept;

/// What killed saves left among `names`: temporary files, data files of `basename`-N without an index, or of another number
/// of shards than the index speaks of; but not the data of `claimed`, whose index should be there.
[[nodiscard]] std::vector<std::string> find_leftovers(io::file_system& files, const std::string& directory, std::string_view basename,
                                                      const std::vector<std::string>& names,
                                                      const std::set<std::string, std::less<>>& claimed);

/// Removes them. Says in one warning what; what cannot be removed is logged and stays.
void sweep_leftovers(io::file_system& files, const std::string& directory, const std::vector<std::string>& leftovers);

/// The least number of shards from `wanted` on of which `prefix` has no data file in `names`: so the data of a new
/// checkpoint never takes the place of that of an older one of the same name, which stays whole until the new index is there.
[[nodiscard]] std::int32_t free_shard_count(const std::vector<std::string>& names, std::string_view prefix, std::int32_t wanted);

/// Removes the data files of `prefix`, but for those with `kept` shards (0: none kept); failures are logged.
void remove_data_files(io::file_system& files, const std::string& directory, const std::vector<std::string>& names, std::string_view prefix,
                       std::int32_t kept);

}  // namespace stepwell::detail
