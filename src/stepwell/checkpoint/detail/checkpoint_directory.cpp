// SPDX-License-Identifier: Apache-2.0
#include "stepwell/checkpoint/detail/checkpoint_directory.hpp"

#include "stepwell/base/clock.hpp"
#include "stepwell/base/detail/locks.hpp"
#include "stepwell/base/error.hpp"
#include "stepwell/base/log.hpp"
#include "stepwell/base/trace.hpp"
#include "stepwell/checkpoint/detail/beside_writer.hpp"
#include "stepwell/checkpoint/detail/checkpoint_writer.hpp"
#include "stepwell/checkpoint/detail/stored_checkpoint.hpp"
#include "stepwell/checkpoint/detail/unsynced_file_system.hpp"
#include "stepwell/checkpoint/find_checkpoints.hpp"
#include "stepwell/format/checkpoint/detail/bundle.hpp"
#include "stepwell/format/checkpoint/detail/ending_file.hpp"
#include "stepwell/io/atomic_file.hpp"
#include "stepwell/io/detail/read_file.hpp"
#include "stepwell/io/file_system.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <charconv>
#include <chrono>
#include <iterator>
#include <map>
#include <system_error>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace stepwell::detail {
namespace {

constexpr std::int32_t own_version = 1;

/// Returns the number that `text` consists of, or nothing.
template<class Number>
std::optional<Number> number_in(std::string_view text) noexcept {
  Number number = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  return failure == std::errc() && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

/// Returns the path to open. A relative path is relative to the directory. If an absolute path does not exist, the checkpoint may
/// have been moved together with the directory.
std::string resolve(io::file_system& files, const std::string& directory, const std::string& path) {
  if (!path.starts_with('/')) { return io::join_path(directory, path); }
  if (value_or_throw(files.exists(format::index_name(path)))) { return path; }
  auto moved = io::join_path(directory, io::base_name(path));
  const bool is_moved = value_or_throw(files.exists(format::index_name(moved)));
  return is_moved ? moved : path;
}

/// Returns the prefixes that a state file lists, without duplicates, in order. The last occurrence of a checkpoint counts, and the
/// newest is last.
std::vector<std::string> prefixes_of(io::file_system& files, const std::string& directory, const format::checkpoint_state& content) {
  std::unordered_map<std::string, std::string> canonical;  // by directory
  std::unordered_set<std::string> known;                   // different prefixes of one checkpoint have one canonical path
  std::vector<std::string> newest_first;
  const auto add = [&](const std::string& path) {
    auto prefix = resolve(files, directory, path);
    const auto [parent, is_new] = canonical.try_emplace(io::parent_directory(prefix));
    if (is_new) {
      auto canonical_parent = files.canonical(parent->first);
      parent->second = canonical_parent ? std::move(canonical_parent).value() : parent->first;
    }
    if (known.insert(io::join_path(parent->second, io::base_name(prefix))).second) { newest_first.push_back(std::move(prefix)); }
  };
  add(content.model_checkpoint_path);
  const auto& paths = content.all_model_checkpoint_paths;
  std::for_each(paths.rbegin(), paths.rend(), add);
  std::ranges::reverse(newest_first);
  return newest_first;
}

/// Highest valid save number. Higher numbers are ignored, because the numbers of further saves could overflow.
constexpr std::int64_t max_save_number = std::int64_t{1} << 62;

/// Returns the save number of the checkpoint `prefix`, or nothing if it has none that can be read.
std::optional<std::int64_t> save_number_of(const std::shared_ptr<io::file_system>& files, const std::string& prefix) {
  try {
    const checkpoint_reader reader(prefix, files);
    const auto* entry = reader.find(save_number_name);
    if (entry == nullptr || entry->dtype != dtype::int64 || !entry->shape.empty()) { return std::nullopt; }
    const auto number = reader.read(save_number_name).as<std::int64_t>().front();
    return number >= 1 && number <= max_save_number ? std::optional(number) : std::nullopt;
  } catch (const error&) {
    return std::nullopt;  // the failure is reported when this checkpoint is restored
  }
}

/// Returns the step in the name. If the name has none, returns the value of the tensor `global_step`.
std::optional<std::int64_t> step_of(const std::shared_ptr<io::file_system>& files, const std::string& prefix) {
  if (const auto step = step_of_checkpoint(prefix)) { return step; }
  try {
    return checkpoint_reader(prefix, files).step();
  } catch (const error&) { return std::nullopt; }
}

/// An unlisted checkpoint with its position in the order.
struct ranked_checkpoint {
  std::string prefix;
  std::int64_t step = 0;
  std::optional<std::int64_t> number = std::nullopt;
  std::int64_t rank = 0;  ///< Its number, or the number of the checkpoint it directly follows.
};

/// Returns the checkpoints, oldest first. `prefixes` must be sorted by step.
std::vector<ranked_checkpoint> ranked(const std::shared_ptr<io::file_system>& files, std::vector<std::string> prefixes) {
  std::vector<ranked_checkpoint> all;
  std::int64_t highest = 0;
  for (auto& prefix : prefixes) {
    const auto number = save_number_of(files, prefix);
    highest = std::max(highest, number.value_or(0));
    const auto step = step_of_checkpoint(prefix).value_or(0);
    all.push_back({std::move(prefix), step, number, number.value_or(highest)});
  }
  std::ranges::sort(all, {},
                    [](const auto& checkpoint) { return std::tuple(checkpoint.rank, !checkpoint.number.has_value(), checkpoint.step); });
  return all;
}

/// Returns the save number of the newest of `prefixes` (sorted oldest first) that has a readable one.
std::optional<std::int64_t> newest_save_number(const std::shared_ptr<io::file_system>& files, const std::vector<std::string>& prefixes) {
  for (auto prefix = prefixes.rbegin(); prefix != prefixes.rend(); ++prefix) {
    if (const auto number = save_number_of(files, *prefix)) { return number; }
  }
  return std::nullopt;
}

bool is_ours(std::string_view prefix, std::string_view basename) { return step_in_name(prefix, basename, "").has_value(); }

/// Returns true if `name` is a temporary name of a file that this saver or its session writes.
bool is_own_temporary(std::string_view name, std::string_view basename) {
  const auto final_name = io::final_name_of_temporary(name);
  const auto data = parse_data_name(final_name);
  return final_name == state_file_name || final_name == format::ending_file_name ||
         step_in_name(final_name, basename, format::index_suffix).has_value() || (data && is_ours(data->prefix, basename));
}

/// Returns the files of `names` that killed saves left: temporary files, and data files of `basename`-N whose index is missing or specifies
/// another number of shards. Excludes the data of the prefixes in `claimed`, whose index should exist.
std::vector<std::string> find_leftovers(io::file_system& files, const std::string& directory, std::string_view basename,
                                        const std::vector<std::string>& names, const std::set<std::string, std::less<>>& claimed) {
  std::vector<std::string> leftovers;
  std::map<std::string_view, std::map<std::int32_t, std::vector<std::string>>> data;  // by prefix and number of shards
  for (const auto& name : names) {
    if (is_own_temporary(name, basename)) { leftovers.push_back(name); }
    const auto parsed = parse_data_name(name);
    if (parsed && is_ours(parsed->prefix, basename)) { data[parsed->prefix][parsed->shards].push_back(name); }
  }
  for (const auto& [prefix, by_shards] : data) {
    const bool has_index = std::ranges::binary_search(names, format::index_name(prefix));
    if (has_index ? by_shards.size() == 1 : claimed.contains(prefix)) { continue; }
    const auto kept = has_index ? shards_in_index(files, io::join_path(directory, prefix)) : std::optional(std::int32_t{0});
    for (const auto& [shards, group] : by_shards) {
      if (kept && shards != *kept) { leftovers.insert(leftovers.end(), group.begin(), group.end()); }
    }
  }
  return leftovers;
}

/// Removes the leftovers and logs their names in one line. Logs files that cannot be removed and leaves them in place.
void sweep_leftovers(io::file_system& files, const std::string& directory, const std::vector<std::string>& leftovers) {
  std::string swept;
  for (const auto& name : leftovers) {
    if (remove_or_log(files, io::join_path(directory, name))) { swept.append(swept.empty() ? "" : ", ").append(name); }
  }
  if (!swept.empty()) { log_info(fmt::format("{}: removed incomplete files of a killed save: {}", directory, swept)); }
}

}  // namespace

std::shared_ptr<io::file_system> with_fence(std::shared_ptr<io::file_system> files, const std::string& directory, io::fence_use use) {
  if (std::dynamic_pointer_cast<io::fenced_directory>(files)) { return files; }
  return std::make_shared<io::fenced_directory>(directory, std::move(files), use);
}

std::optional<clock::wall_time> modified_time(io::file_system& files, const std::string& path) {
  const auto file_info = files.stat(path);
  if (file_info) { return file_info->modified; }
  if (file_info.error().code != errc::not_found) { throw_status(file_info.error()); }
  return std::nullopt;
}

bool remove_or_log(io::file_system& files, const std::string& path) {
  const auto removed = files.remove(path);
  if (!removed && removed.error().code != errc::not_found) { log_warning(removed.error().to_string()); }
  return removed.ok();
}

std::vector<std::string> names_in(io::file_system& files, const std::string& directory) {
  if (!value_or_throw(files.exists(directory))) { return {}; }
  if (!value_or_throw(files.stat(directory)).is_directory) {
    throw invalid_argument_error("this is a file, not a checkpoint directory; give the path of a directory", directory);
  }
  return value_or_throw(files.list(directory));
}

std::optional<std::int64_t> step_in_name(std::string_view name, std::string_view basename, std::string_view suffix) noexcept {
  if (!name.starts_with(basename) || !name.ends_with(suffix) || name.size() < basename.size() + suffix.size()) { return std::nullopt; }
  name.remove_suffix(suffix.size());
  name.remove_prefix(basename.size());
  if (!name.starts_with('-')) { return std::nullopt; }
  const auto step = number_in<std::int64_t>(name.substr(1));
  return step && *step >= 0 ? step : std::nullopt;
}

std::optional<data_file_name> parse_data_name(std::string_view name) noexcept {
  constexpr std::string_view middle = ".data-";
  constexpr std::size_t tail = 5 + 4 + 5;  // "00000-of-00001"
  const auto at = name.rfind(middle);
  if (at == std::string_view::npos || name.size() - at - middle.size() != tail || name.substr(name.size() - 9, 4) != "-of-") {
    return std::nullopt;
  }
  const auto shards = number_in<std::int32_t>(name.substr(name.size() - 5));
  return shards ? std::optional(data_file_name{name.substr(0, at), *shards}) : std::nullopt;
}

void remove_data_files(io::file_system& files, const std::string& directory, const std::vector<std::string>& names,
                       const std::function<bool(const data_file_name&)>& removes) {
  for (const auto& name : names) {
    const auto parsed = parse_data_name(name);
    if (parsed && removes(*parsed)) { remove_or_log(files, io::join_path(directory, name)); }
  }
}

std::vector<checkpoint_files> find_checkpoint_files(io::file_system& files, const std::string& directory) {
  auto found = read_beside_writer(directory, [&]() -> std::optional<std::vector<checkpoint_files>> {
    const auto names = value_or_throw(files.list(directory));
    std::map<std::string, std::uint64_t, std::less<>> sizes;  // by the name of the checkpoint
    for (const auto& name : names) {
      const auto data = parse_data_name(name);
      const bool is_other = format::prefix_of_index(name).has_value() || name.ends_with(".meta");
      if (!data && !is_other) { continue; }
      const auto owner = data ? std::string(data->prefix) : name.substr(0, name.rfind('.'));
      if (const auto info = files.stat(io::join_path(directory, name))) { sizes[owner] += info->size; }
    }
    std::vector<checkpoint_files> all;
    bool has_gone = false;
    for (const auto& name : names) {
      const auto owner = format::prefix_of_index(name);
      if (!owner || owner->empty() || io::is_temporary_name(name)) { continue; }
      const auto written = modified_time(files, io::join_path(directory, name));  // after the sizes, which are then those of all its files
      has_gone = has_gone || !written;
      if (written) { all.push_back({io::join_path(directory, *owner), *written, sizes[std::string(*owner)]}); }
    }
    return all.empty() && has_gone ? std::nullopt : std::optional(std::move(all));
  });
  std::ranges::sort(found, {}, [](const auto& one) { return std::pair(step_of_checkpoint(one.prefix).value_or(-1), one.prefix); });
  return found;
}

void throw_always_changing(const std::string& directory) {
  throw unavailable_error(
      "the checkpoints in this directory are deleted before they can be opened; keep more of them (max_to_keep), or save less often",
      directory);
}

std::optional<newest_listed> find_newest_listed(io::file_system& files, const std::string& directory) {
  std::string missing;  // named by the state file before, and without an index since
  return read_beside_writer(directory, [&]() -> std::optional<std::optional<newest_listed>> {
    auto state = read_state_file(files, directory);
    if (!state) { return std::optional<newest_listed>(); }
    auto& newest = state->prefixes.back();
    const bool exists = value_or_throw(files.exists(format::index_name(newest)));
    if (exists || newest == missing) { return std::optional(newest_listed{std::move(newest), exists}); }
    missing = std::move(newest);
    return std::nullopt;
  });
}

std::optional<state_file> read_state_file(io::file_system& files, const std::string& directory) {
  constexpr std::uint64_t max_state_bytes = std::uint64_t{8} << 20;
  const auto path = io::join_path(directory, state_file_name);
  auto text = io::read_text_file(files, path, max_state_bytes);
  if (!text && text.error().code == errc::not_found) { return std::nullopt; }
  if (!text && text.error().code != errc::invalid_argument) { throw_status(text.error()); }
  auto content = text ? format::decode_checkpoint_state(*text) : result<format::checkpoint_state>(text.error());
  if (text) { *text = std::string(); }  // frees the text, which is as large as the parsed content
  if (!content) {
    log_warning("Invalid checkpoint state loaded from " + path + ": " + content.error().message +
                "; the checkpoints on disk are used instead");
    return std::nullopt;
  }
  state_file state{.content = std::move(*content), .prefixes = {}};
  state.prefixes = prefixes_of(files, directory, state.content);
  return state;
}

unlisted_checkpoints find_unlisted(const std::shared_ptr<io::file_system>& files, const std::string& directory, std::string_view basename,
                                   const std::optional<state_file>& state) {
  auto prefixes = list_checkpoints(directory, basename, files);
  if (state) {
    const std::set<std::string> listed(state->prefixes.begin(), state->prefixes.end());
    std::erase_if(prefixes, [&](const auto& prefix) { return listed.contains(prefix); });
  }
  unlisted_checkpoints unlisted;
  if (prefixes.empty()) { return unlisted; }
  const auto newest_number = state ? newest_save_number(files, state->prefixes) : std::nullopt;
  const auto newest_step = state ? step_of(files, state->prefixes.back()) : std::nullopt;
  const auto is_newer = [&](const ranked_checkpoint& checkpoint) {
    if (checkpoint.number && newest_number) { return *checkpoint.number > *newest_number; }
    return newest_step ? checkpoint.step > *newest_step : checkpoint.number.has_value();
  };
  for (auto& checkpoint : ranked(files, std::move(prefixes))) {
    unlisted.last_number = std::max(unlisted.last_number, checkpoint.number.value_or(0));
    (state && is_newer(checkpoint) ? unlisted.newer : unlisted.older).push_back(std::move(checkpoint.prefix));
  }
  return unlisted;
}

retention_plan plan_retention(const std::vector<listed_checkpoint>& list, const saver_options& options, double last_preserved) {
  retention_plan plan{.listed = {}, .deleted = {}, .last_preserved = last_preserved};
  const auto most = options.max_to_keep.enabled();
  const auto window = most ? static_cast<std::size_t>(*most) : list.size();
  const auto hours = options.keep_every_n_hours.enabled();
  for (std::size_t i = 0; i < list.size(); ++i) {
    const auto& checkpoint = list[i];
    const bool is_newest = i + 1 == list.size();
    if (checkpoint.is_kept && !is_newest) { continue; }
    if (i + window >= list.size() || checkpoint.is_protected) {
      plan.listed.push_back(checkpoint);
    } else if (hours && checkpoint.time - plan.last_preserved >= *hours * 3600) {
      plan.last_preserved = checkpoint.time;
    } else if (checkpoint.is_ours) {
      plan.deleted.push_back(checkpoint);
    }
  }
  return plan;
}

std::string checkpoint_directory::path_of(std::string_view name) const {
  return name.starts_with('/') ? std::string(name) : io::join_path(path_, name);
}

/// Returns the name relative to the directory if the checkpoint is inside it, whichever path leads there. Otherwise returns the full path.
std::string checkpoint_directory::name_of(const std::string& prefix) const {
  if (prefix.find('/') == std::string::npos) { return prefix; }
  const auto parent = files_->canonical(io::parent_directory(prefix));
  if (parent && *parent == canonical_) { return io::base_name(prefix); }
  const auto inside = io::join_path(path_, "");
  if (prefix.starts_with(inside)) { return prefix.substr(inside.size()); }
  return parent ? io::join_path(*parent, io::base_name(prefix)) : prefix;
}

std::string checkpoint_directory::file_name_at(std::int64_t step) const {
  return fmt::format("{}-{:0{}}", options_.basename, step, options_.pad_step_number ? 8 : 1);
}

/// Returns the name of the checkpoint that `checkpoint` stands for, see `saver::pin`. Throws `not_found_error` if there is none.
std::string checkpoint_directory::pinned_name(const std::string& checkpoint) const {
  std::string_view prefix = checkpoint;
  if (const auto data = parse_data_name(checkpoint)) { prefix = data->prefix; }
  prefix = format::prefix_of_index(prefix).value_or(prefix);
  auto name = name_of(std::string(prefix));
  const auto list = listed();
  const bool is_listed = std::ranges::find(list, name, &listed_checkpoint::name) != list.end();
  const bool is_inside = name.find('/') == std::string::npos;
  if (is_listed || (is_inside && value_or_throw(files_->exists(format::index_name(path_of(name)))))) { return name; }
  const auto existing = list_checkpoints(path_, options_.basename, files_);
  const auto step = number_in<std::int64_t>(checkpoint);
  if (const auto match = std::ranges::find(existing, step, step_of_checkpoint); step && match != existing.end()) {
    return io::base_name(*match);
  }
  const auto newest = !list.empty() ? list.back().step : existing.empty() ? -1 : step_of_checkpoint(existing.back()).value_or(-1);
  const auto later = is_inside ? step_in_name(name, options_.basename, "") : std::nullopt;
  if (lock_ && later.value_or(step.value_or(-1)) > newest) { return later ? name : file_name_at(*step); }
  throw not_found_error(fmt::format("there is no checkpoint \"{}\" to pin; {}", checkpoint,
                                    existing.empty() ? fmt::format("there is no {}-STEP", options_.basename)
                                                     : fmt::format("the checkpoints are {} to {}", io::base_name(existing.front()),
                                                                   io::base_name(existing.back()))),
                        path_);
}

double checkpoint_directory::seconds_now() const { return wall_seconds(time_->wall_now()); }

checkpoint_directory::checkpoint_directory(std::string path, const saver_options& options, directory_access access)
    : path_(std::move(path)), options_(options), files_(options.file_system),
      fence_(std::dynamic_pointer_cast<io::fenced_directory>(options.file_system)), time_(options.clock) {
  if (!options.sync) { files_ = std::make_shared<unsynced_file_system>(files_); }
  const bool is_own = access == directory_access::own;
  if (is_own) { value_or_throw(files_->create_directories(path_)); }
  canonical_ = value_or_throw(files_->canonical(path_));
  if (is_own) { lock_ = value_or_throw(files_->lock(io::join_path(canonical_, lock_name))); }
  const auto state = read_state_file(*files_, path_);
  const auto names = names_in(*files_, path_);
  // A directory that has a fence keeps it, also where files can be locked: its last writer may only be suspended.
  if (is_own && fence_ && std::ranges::any_of(names, io::is_fence_name)) { value_or_throw(fence_->open_fence()); }
  const auto claimed = claimed_without_index(state);
  leftovers_ = find_leftovers(*files_, path_, options_.basename, names, claimed);
  if (state) { load_list(*state); }  // without a valid state file the list stays empty, so no existing checkpoint will be deleted
  const auto unlisted = find_unlisted(files_, path_, options_.basename, state);  // killed saves finished the newer ones
  for (const auto& prefix : unlisted.newer) { retention_is_due_ = add(prefix, true) || retention_is_due_; }
  remove_older_duplicates();
  for (const auto& checkpoint : options_.pinned) { pinned_.insert(pinned_name(checkpoint)); }
  last_save_number_ = std::max(unlisted.last_number, state ? newest_save_number(files_, state->prefixes).value_or(0) : 0);
  if (last_preserved_ == 0) { last_preserved_ = seconds_now(); }
  check_clock();
  if (!is_own) { return; }
  // Changes after all checks: an error changes no file. The state file first, so that it never lists a checkpoint without any file.
  if (claimed.empty()) { list_at_start(); }
  sweep_leftovers(*files_, path_, leftovers_);
}

bool checkpoint_directory::is_in_place() const noexcept { return !lock_ || lock_->is_at(io::join_path(path_, lock_name)); }

/// Returns the failure of all further changes if another writer has taken over the directory.
std::optional<status> checkpoint_directory::taken_over() const noexcept {
  if (!fence_) { return std::nullopt; }
  auto is_newest = fence_->check();
  if (is_newest || is_newest.error().code != errc::failed_precondition) { return std::nullopt; }
  return std::move(is_newest).error();
}

std::exception_ptr checkpoint_directory::failure_of_fence(std::exception_ptr failure) const {
  const auto why = taken_over();
  if (!why) { return failure; }
  return std::make_exception_ptr(failed_precondition_error("could not save a checkpoint; " + why->message, path_));
}

/// Throws `failed_precondition_error` if another directory is at the path of the locked one. Otherwise files of two directories would be
/// mixed. If there is no directory at all, the write of the first file fails.
void checkpoint_directory::check_is_in_place() const {
  if (is_in_place() || !value_or_throw(files_->exists(path_))) { return; }
  throw failed_precondition_error(
      fmt::format(
          "the directory that this saver locked, or its file {}, was moved or removed; nothing is saved at its path, which may now be "
          "that of another directory. Stop this run, or move the original directory back",
          lock_name),
      path_);
}

/// Corrects times in the future, which occur after the clock was set back. Otherwise `keep_every_n_hours` would have no effect until the
/// clock reaches those times again. If hours are counted, the checkpoints in the list are kept permanently and counting starts again now.
/// @pre The mutex is held, or this is the constructor.
void checkpoint_directory::check_clock() {
  const auto now = seconds_now();
  const bool counts_hours = options_.keep_every_n_hours.enabled().has_value();
  const bool was_set_back = last_preserved_ > now;
  if (was_set_back && counts_hours) {
    log_warning(
        fmt::format("{}: the clock is {:.0f} seconds behind the time at which keep_every_n_hours kept the last checkpoint "
                    "permanently; the checkpoints listed now are kept permanently, and the hours are counted from now on",
                    path_, last_preserved_ - now));
  }
  last_preserved_ = std::min(last_preserved_, now);
  for (auto& entry : list_) {
    entry.time = std::min(entry.time, now);
    entry.is_kept = entry.is_kept || (was_set_back && counts_hours);
  }
}

/// Removes each entry from the list that has a newer one of the same name. A state file can list a checkpoint by two paths.
/// @pre This is the constructor.
void checkpoint_directory::remove_older_duplicates() {
  std::unordered_set<std::string> names;  // of the newer entries
  const auto removed =
      std::stable_partition(list_.rbegin(), list_.rend(), [&](const auto& entry) { return names.insert(entry.name).second; });
  list_.erase(list_.begin(), removed.base());
}

/// Adds a checkpoint as the newest. Returns false if it does not exist, or if its index or its file sizes are invalid. With `verifies`
/// also compares all checksums.
bool checkpoint_directory::add(const std::string& prefix, bool verifies) {
  try {
    const checkpoint_reader reader(prefix, files_);
    if (verifies) { reader.verify(); }
    listed_checkpoint entry{.name = name_of(prefix), .step = step_of_checkpoint(prefix).value_or(0)};
    entry.is_ours = io::base_name(prefix) == entry.name && reader.contains(own_version_name) && is_ours(entry.name, options_.basename);
    entry.time = wall_seconds(value_or_throw(files_->stat(format::index_name(prefix))).modified);
    const mutex_lock lock(mutex_);
    list_.push_back(std::move(entry));
    return true;
  } catch (const not_found_error&) {
    return false;  // deleted in the meantime, by retention or by another process
  } catch (const error& failure) {
    if (!is_damage(failure)) { throw; }
    log_warning(
        fmt::format("checkpoint {} is damaged; it is not {} and not deleted: {}", prefix, verifies ? "listed" : "counted", failure.what()));
    return false;
  }
}

/// Returns the names in the state file if the index of the newest one is missing. Neither retention nor a kill removes that index. Another
/// program must have removed it, and the data that the state file names may be all that is left. Such data is not a leftover.
std::set<std::string, std::less<>> checkpoint_directory::claimed_without_index(const std::optional<state_file>& state) const {
  if (!state || value_or_throw(files_->exists(format::index_name(state->prefixes.back())))) { return {}; }
  std::set<std::string, std::less<>> claimed;
  for (const auto& prefix : state->prefixes) { claimed.insert(name_of(prefix)); }
  return claimed;
}

void checkpoint_directory::load_list(const state_file& state) {
  std::map<std::string, double> times;
  const auto& paths = state.content.all_model_checkpoint_paths;
  const auto& stamps = state.content.all_model_checkpoint_timestamps;
  for (std::size_t i = 0; i < stamps.size(); ++i) { times[io::base_name(paths[i])] = stamps[i]; }
  last_preserved_ = state.content.last_preserved_timestamp;
  for (const auto& prefix : state.prefixes) {
    in_file_.push_back(name_of(prefix));
    const auto time = times.find(io::base_name(prefix));
    if (add(prefix, false) && time != times.end()) { list_.back().time = time->second; }
  }
}

void checkpoint_directory::close() noexcept {
  bool is_due = false;
  {
    const mutex_lock exclusive(one_at_a_time_);
    is_due = lock_ && retention_is_due_;
  }
  if (is_due) { tidy(); }
  lock_.reset();
}

std::vector<std::string> checkpoint_directory::checkpoints() const {
  const mutex_lock lock(mutex_);
  std::vector<std::string> prefixes;
  for (const auto& entry : list_) { prefixes.push_back(path_of(entry.name)); }
  return prefixes;
}

void checkpoint_directory::pin(const std::string& checkpoint) {
  auto name = pinned_name(checkpoint);
  const mutex_lock lock(mutex_);
  pinned_.insert(std::move(name));
}

std::optional<checkpoint_reader> checkpoint_directory::restore_newest() {
  const mutex_lock exclusive(one_at_a_time_);
  auto newest = lock_ ? std::nullopt : newest_still_listed();
  if (!newest) { newest = latest_whole_checkpoint(path_, options_.basename, files_); }
  if (newest) { note_restored(*newest); }
  return newest;
}

/// Returns the newest of the listed checkpoints that still exist. Returns nothing if it is damaged, or if there is none.
std::optional<checkpoint_reader> checkpoint_directory::newest_still_listed() const {
  for (auto entry = list_.rbegin(); entry != list_.rend(); ++entry) {
    try {
      checkpoint_reader reader(path_of(entry->name), files_);
      reader.verify();
      return reader;
    } catch (const not_found_error&) {  // NOLINT(bugprone-empty-catch): deleted in the meantime
    } catch (const error&) { return std::nullopt; }
  }
  return std::nullopt;
}

std::optional<checkpoint_reader> checkpoint_directory::open_newest(std::shared_ptr<void> hold) {
  const mutex_lock exclusive(one_at_a_time_);
  return stepwell::open_newest(path_, options_.basename, files_, [this, hold = std::move(hold)](const checkpoint_reader& restored) {
    const mutex_lock alone(one_at_a_time_);
    note_restored(restored);
  });
}

/// @pre `one_at_a_time_` is held.
void checkpoint_directory::note_restored(const checkpoint_reader& newest) {
  const auto name = name_of(newest.prefix());
  {
    const mutex_lock lock(mutex_);
    restored_from_ = name;  // earlier ones lose protection, so that many recoveries do not fill the disk
    // The newer ones in the list are damaged. From now on they are neither counted nor deleted.
    const auto at = std::ranges::find(list_, name, &listed_checkpoint::name);
    list_.erase(at != list_.end() ? std::next(at) : list_.begin(), list_.end());
  }
  if (list_.empty()) { add(newest.prefix(), false); }
  list_at_start();
}

/// Makes the state file list the checkpoints that this saver continues with, unless it already does. The previous process may have been
/// killed between a save, or a deletion, and the update of the state file, or the checkpoints in the state file may be damaged.
void checkpoint_directory::list_at_start() noexcept {
  if (!lock_ || list_.empty() || names_to_list() == in_file_) { return; }
  const auto& newest = list_.back().name;
  const auto missing = in_file_.empty() || in_file_.back() != newest ? fmt::format("names {} as the newest checkpoint", newest)
                                                                     : std::string("lists only checkpoints that are there");
  try {
    check_is_in_place();
    write_state();
    log_info(fmt::format("{}: the state file now {}", path_, missing));
  } catch (const std::exception& failure) {
    log_warning(
        fmt::format("{}: could not write the state file so that it {}; the next save writes it: {}", path_, missing, failure.what()));
  }
}

/// Returns the names for the state file, oldest first.
std::vector<std::string> checkpoint_directory::names_to_list() const {
  std::vector<std::string> names;
  for (const auto& entry : list_) {
    if (!entry.is_kept || &entry == &list_.back()) { names.push_back(entry.name); }
  }
  return names;
}

saved_checkpoint checkpoint_directory::write(const snapshot& taken, const std::function<void()>& before_commit) {
  const mutex_lock exclusive(one_at_a_time_);
  const auto start = time_->now();
  const auto name = file_name_at(taken.step());
  trace_span span("save", "checkpoint");
  if (span) { span.argument("checkpoint", path_of(name)); }
  span.argument("bytes", taken.size_bytes());
  std::uint64_t size_bytes = 0;
  try {
    check_is_in_place();
    size_bytes = write_tensors(name, taken, before_commit);
    {
      const mutex_lock lock(mutex_);
      check_clock();
      std::erase_if(list_, [&](const auto& entry) { return entry.name == name; });
      list_.push_back({.name = name, .step = taken.step(), .time = seconds_now(), .is_ours = true});
    }
    write_state();
  } catch (const error& failure) {
    const auto is_there = files_->exists(path_);
    const auto why =
        is_there && !*is_there
            ? fmt::format("Parent directory of {} doesn't exist, can't save; the directory was removed while it was in use", name)
            : "earlier checkpoints are unchanged";
    const auto& cause = failure.cause();
    const auto colon = cause.place.empty() ? "" : ": ";
    throw_status(
        {cause.code, fmt::format("could not save this checkpoint; {}: {}{}{}", why, cause.place, colon, cause.message), path_of(name)});
  }
  return {path_of(name), taken.step(), size_bytes, time_->now() - start};
}

/// Writes the files of a checkpoint, and returns their size in bytes.
std::uint64_t checkpoint_directory::write_tensors(const std::string& name, const snapshot& taken,
                                                  const std::function<void()>& before_commit) {
  const auto names = value_or_throw(files_->list(path_));
  auto shards = options_.shards;
  const auto is_taken = [&](const auto& file) {  // overwriting would damage an older checkpoint of this name before the new index exists
    const auto parsed = parse_data_name(file);
    return parsed && parsed->prefix == name && parsed->shards == shards;
  };
  while (std::ranges::any_of(names, is_taken)) { ++shards; }
  checkpoint_writer writer(path_of(name), files_, shards);
  for (const auto& entry : taken.entries()) {
    if (entry.dtype == dtype::string) {
      writer.add_strings(entry.name, entry.shape, entry.strings);
    } else {
      writer.add(entry.name, {entry.dtype, entry.shape, entry.bytes});
    }
  }
  const std::int64_t number = ++last_save_number_;
  writer.add(own_version_name, {dtype::int32, {}, std::as_bytes(std::span(&own_version, 1))});
  writer.add(save_number_name, {dtype::int64, {}, std::as_bytes(std::span(&number, 1))});
  writer.commit(before_commit);
  remove_data_files(*files_, path_, names, [&](const auto& data) { return data.prefix == name && data.shards != shards; });
  return writer.size_bytes();
}

void checkpoint_directory::write_state() {
  const trace_span span("write state file", "checkpoint");
  if (list_.empty()) { return; }
  format::checkpoint_state state;
  state.model_checkpoint_path = list_.back().name;
  state.last_preserved_timestamp = last_preserved_;
  state.all_model_checkpoint_paths = names_to_list();
  for (const auto& entry : list_) {
    if (!entry.is_kept || &entry == &list_.back()) { state.all_model_checkpoint_timestamps.push_back(entry.time); }
  }
  value_or_throw(io::write_file_atomically(*files_, io::join_path(path_, state_file_name), encode(state)));
  in_file_ = std::move(state.all_model_checkpoint_paths);
}

std::vector<listed_checkpoint> checkpoint_directory::listed() const {
  const mutex_lock lock(mutex_);
  auto list = list_;
  for (auto& entry : list) { entry.is_protected = pinned_.contains(entry.name) || entry.name == restored_from_; }
  return list;
}

retention_plan checkpoint_directory::plan() const {
  const auto list = listed();
  const mutex_lock lock(mutex_);
  return plan_retention(list, options_, last_preserved_);
}

void checkpoint_directory::tidy() noexcept {
  const mutex_lock exclusive(one_at_a_time_);
  const trace_span span("tidy", "checkpoint");
  retention_is_due_ = false;
  try {
    retain();
  } catch (const std::exception& failure) {
    log_warning(fmt::format("{}: could not remove old checkpoints, will retry after the next save: {}", path_, failure.what()));
  }
}

void checkpoint_directory::prune() {
  const mutex_lock exclusive(one_at_a_time_);
  retain();
}

/// Removes each index while the state file still lists it, then removes the checkpoint from the list. So a kill in between never leaves a
/// complete checkpoint that is unlisted. The data is removed last. Data without an index is a leftover, which is removed at the next start.
void checkpoint_directory::retain() {
  auto plan = this->plan();
  if (plan.listed.size() == list_.size()) { return; }
  for (const auto& entry : plan.deleted) {
    const auto removed = files_->remove(format::index_name(path_of(entry.name)));
    if (!removed && removed.error().code != errc::not_found) { throw_status(removed.error()); }
  }
  {
    const mutex_lock lock(mutex_);
    list_ = std::move(plan.listed);
    last_preserved_ = plan.last_preserved;
  }
  write_state();  // syncs the directory, so that no index can reappear after its data is removed
  std::set<std::string_view> deleted;
  for (const auto& entry : plan.deleted) { deleted.insert(entry.name); }
  const auto names = value_or_throw(files_->list(path_));
  remove_data_files(*files_, path_, names, [&](const auto& data) { return deleted.contains(data.prefix); });
}

}  // namespace stepwell::detail
