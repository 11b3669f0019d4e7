// SPDX-License-Identifier: Apache-2.0
#include "stepwell/creation/scaffold.hpp"

#include "stepwell/base/error.hpp"
#include "stepwell/base/log.hpp"
#include "stepwell/checkpoint/find_checkpoints.hpp"
#include "stepwell/io/file_system.hpp"
#include "stepwell/protocol/hook.hpp"
#include "stepwell/protocol/state_names.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <optional>
#include <string_view>

namespace stepwell {
namespace {

using name_pair = checkpoint_name_map::value_type;

bool is_prefix(std::string_view name) noexcept { return name.ends_with('/'); }
/// Returns the prefix of the variables below `prefix`. "/" stands for all variables.
std::string_view below(std::string_view prefix) noexcept { return prefix == "/" ? std::string_view() : prefix; }
bool is_ours(std::string_view name) noexcept { return name == global_step_name || name.starts_with(reserved_prefix); }

void check(const checkpoint_name_map& names) {
  if (names.empty()) { throw invalid_argument_error("init_from_checkpoint: the map is empty; {{\"/\", \"/\"}} restores all variables"); }
  for (const auto& [theirs, ours] : names) {
    if (theirs.empty() || ours.empty()) { throw invalid_argument_error("init_from_checkpoint: a name in the map is empty"); }
    if (is_prefix(theirs) != is_prefix(ours)) {
      throw invalid_argument_error(
          fmt::format("init_from_checkpoint: \"{}\" -> \"{}\" maps a name to a prefix; end both with \"/\", "
                      "or neither",
                      theirs, ours));
    }
    if (is_ours(ours)) {
      throw invalid_argument_error(
          fmt::format("init_from_checkpoint: \"{}\" is reserved for the session; a warm start cannot set it", ours));
    }
  }
}

/// Returns the name in the checkpoint of our variable `name`, if `pair` matches it.
std::optional<std::string> their_name(const name_pair& pair, std::string_view name) {
  const auto& [theirs, ours] = pair;
  if (!is_prefix(ours)) { return name == ours ? std::optional(theirs) : std::nullopt; }
  const auto prefix = below(ours);
  if (!name.starts_with(prefix)) { return std::nullopt; }
  return std::string(below(theirs)).append(name.substr(prefix.size()));
}

/// Returns the variables that the map selects, and their names in the checkpoint.
std::pair<variable_list, restore_options> choose(const checkpoint_name_map& names, const variable_list& variables) {
  variable_list chosen;
  restore_options how;
  std::vector<bool> is_used(names.size());
  for (const auto& variable : variables) {
    if (is_ours(variable.name())) { continue; }
    for (std::size_t i = 0; i < names.size(); ++i) {
      auto theirs = their_name(names[i], variable.name());
      if (!theirs) { continue; }
      is_used[i] = true;
      if (how.names.emplace(variable.name(), std::move(*theirs)).second) { chosen.push_back(variable); }  // the first match counts
    }
  }
  if (const auto unused = std::ranges::find(is_used, false); unused != is_used.end()) {
    const auto& name = names[static_cast<std::size_t>(unused - is_used.begin())].second;
    throw invalid_argument_error(
        fmt::format("init_from_checkpoint: the model has no variable named \"{}\"{}", name, is_prefix(name) ? " or below it" : ""));
  }
  return {std::move(chosen), std::move(how)};
}

/// Throws `not_found_error` if a prefix of the map matches no tensor of the checkpoint.
void check_prefixes(const checkpoint_name_map& names, const checkpoint_reader& source) {
  for (const auto& [theirs, ours] : names) {
    const auto is_below = [prefix = below(theirs)](const checkpoint_entry& entry) { return entry.name.starts_with(prefix); };
    if (!is_prefix(theirs) || std::ranges::any_of(source.entries(), is_below)) { continue; }
    throw not_found_error(fmt::format("init_from_checkpoint: the checkpoint has no tensor below \"{}\"", theirs), source.prefix());
  }
}

checkpoint_reader open(const std::string& from, std::shared_ptr<io::file_system> files) {
  if (!files) { files = io::posix_file_system(); }
  const auto info = files->stat(from);
  if (!info || !info.value().is_directory) { return checkpoint_reader(from, std::move(files)); }
  if (auto newest = latest_whole_checkpoint(from, default_checkpoint_basename, std::move(files))) { return std::move(*newest); }
  throw not_found_error("init_from_checkpoint: there is no checkpoint in this directory", from);
}

}  // namespace

init_from_checkpoint::init_from_checkpoint(const std::string& prefix_or_directory, checkpoint_name_map names,
                                           init_from_checkpoint_options options)
    : from_(value_or_throw(io::absolute_path(prefix_or_directory))), names_(std::move(names)), options_(std::move(options)) {
  check(names_);
}

restore_report init_from_checkpoint::apply(const variable_list& variables) const {
  auto [ours, how] = choose(names_, variables);
  how.allow_missing = options_.allow_missing;
  const auto source = open(from_, options_.file_system);
  check_prefixes(names_, source);
  auto report = restore(ours, source, how);
  log_info(fmt::format("initialised from {}: {}", source.prefix(), fmt::join(report.restored, ", ")));
  if (!report.missing.empty()) {
    log_warning(
        fmt::format("{} does not hold these variables, they keep their values: {}", source.prefix(), fmt::join(report.missing, ", ")));
  }
  return report;
}

}  // namespace stepwell
