// SPDX-License-Identifier: Apache-2.0
#include "stepwell/checkpoint/detail/leftovers.hpp"

#include "stepwell/base/error.hpp"
#include "stepwell/base/log.hpp"
#include "stepwell/checkpoint/detail/state_file.hpp"
#include "stepwell/checkpoint/detail/stored_checkpoint.hpp"
#include "stepwell/checkpoint/latest_checkpoint.hpp"
#include "stepwell/io/atomic_file.hpp"
#include "stepwell/io/path.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <charconv>
#include <map>

namespace stepwell::detail {
namespace {

bool is_ours(std::string_view prefix, std::string_view basename) { return step_in_name(prefix, basename, "").has_value(); }

/// Returns true if `name` is a temporary name of a file that this saver writes.
bool is_own_temporary(std::string_view name, std::string_view basename) {
  const auto final_name = io::final_name_of_temporary(name);
  const auto data = parse_data_name(final_name);
  return final_name == state_file_name || final_name == fmt::format("{}.metrics", basename) ||
         step_in_name(final_name, basename, ".index").has_value() || (data && is_ours(data->prefix, basename));
}

/// Returns the number of shards in the index of a prefix, or nothing if the index cannot be read.
std::optional<std::int32_t> shards_of(io::file_system& files, const std::string& prefix) {
  try {
    return load_index(files, prefix).header.num_shards;
  } catch (const error&) {
    return std::nullopt;  // damage is reported when the checkpoint is restored
  }
}

bool remove_or_log(io::file_system& files, const std::string& path) {
  const auto removed = files.remove(path);
  if (!removed && removed.error().code != errc::not_found) { log_warning(removed.error().to_string()); }
  return removed.ok();
}

/// Groups the data files of `basename` by prefix and number of shards.
std::map<std::string_view, std::map<std::int32_t, std::vector<std::string>>> group_data(const std::vector<std::string>& names,
                                                                                        std::string_view basename) {
  std::map<std::string_view, std::map<std::int32_t, std::vector<std::string>>> groups;
  for (const auto& name : names) {
    const auto parsed = parse_data_name(name);
    if (parsed && is_ours(parsed->prefix, basename)) { groups[parsed->prefix][parsed->shards].push_back(name); }
  }
  return groups;
}

}  // namespace

std::optional<data_file_name> parse_data_name(std::string_view name) noexcept {
  constexpr std::string_view middle = ".data-";
  constexpr std::size_t tail = 5 + 4 + 5;  // "00000-of-00001"
  const auto at = name.rfind(middle);
  if (at == std::string_view::npos || name.size() - at - middle.size() != tail || name.substr(name.size() - 9, 4) != "-of-") {
    return std::nullopt;
  }
  std::int32_t shards = 0;
  const auto digits = name.substr(name.size() - 5);
  const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), shards);
  if (failure != std::errc() || end != digits.data() + digits.size()) { return std::nullopt; }
  return data_file_name{name.substr(0, at), shards};
}

std::vector<std::string> find_leftovers(io::file_system& files, const std::string& directory, std::string_view basename,
                                        const std::vector<std::string>& names, const std::set<std::string, std::less<>>& claimed) {
  std::vector<std::string> leftovers;
  std::ranges::copy_if(names, std::back_inserter(leftovers), [&](const auto& name) { return is_own_temporary(name, basename); });
  for (const auto& [prefix, by_shards] : group_data(names, basename)) {
    const bool has_index = std::ranges::binary_search(names, fmt::format("{}.index", prefix));
    if (has_index ? by_shards.size() == 1 : claimed.contains(prefix)) { continue; }
    const auto kept = has_index ? shards_of(files, io::join_path(directory, prefix)) : std::optional(std::int32_t{0});
    for (const auto& [shards, group] : by_shards) {
      if (kept && shards != *kept) { leftovers.insert(leftovers.end(), group.begin(), group.end()); }
    }
  }
  return leftovers;
}

void sweep_leftovers(io::file_system& files, const std::string& directory, const std::vector<std::string>& leftovers) {
  std::string swept;
  for (const auto& name : leftovers) {
    if (remove_or_log(files, io::join_path(directory, name))) { swept.append(swept.empty() ? "" : ", ").append(name); }
  }
  if (!swept.empty()) { log_warning(fmt::format("{}: removed incomplete files of a killed save: {}", directory, swept)); }
}

std::int32_t free_shard_count(const std::vector<std::string>& names, std::string_view prefix, std::int32_t wanted) {
  const auto is_taken = [&](std::int32_t shards) {
    return std::ranges::any_of(names, [&](const auto& name) {
      const auto parsed = parse_data_name(name);
      return parsed && parsed->prefix == prefix && parsed->shards == shards;
    });
  };
  while (is_taken(wanted)) { ++wanted; }
  return wanted;
}

void remove_data_files(io::file_system& files, const std::string& directory, const std::vector<std::string>& names, std::string_view prefix,
                       std::int32_t kept) {
  for (const auto& name : names) {
    const auto parsed = parse_data_name(name);
    if (parsed && parsed->prefix == prefix && parsed->shards != kept) { remove_or_log(files, io::join_path(directory, name)); }
  }
}

}  // namespace stepwell::detail
