// SPDX-License-Identifier: Apache-2.0
//
// Opening of a directory: lock, leftovers, list and metrics; and writing of the metrics file.
#include "stepwell/checkpoint/detail/checkpoint_directory.hpp"

#include "stepwell/base/error.hpp"
#include "stepwell/base/log.hpp"
#include "stepwell/checkpoint/detail/leftovers.hpp"
#include "stepwell/checkpoint/detail/saver_notes.hpp"
#include "stepwell/checkpoint/detail/state_file.hpp"
#include "stepwell/checkpoint/detail/stored_checkpoint.hpp"
#include "stepwell/checkpoint/detail/unlisted_checkpoints.hpp"
#include "stepwell/checkpoint/latest_checkpoint.hpp"
#include "stepwell/format/checkpoint/bundle.hpp"
#include "stepwell/io/atomic_file.hpp"
#include "stepwell/io/detail/read_file.hpp"
#include "stepwell/io/path.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <charconv>
#include <chrono>
#include <string_view>
#include <utility>

namespace stepwell::detail {
namespace {

constexpr std::string_view lock_name = ".stepwell.lock";
constexpr std::uint64_t max_metrics_bytes = std::uint64_t{16} << 20;
constexpr std::size_t max_metrics = std::size_t{1} << 18;  // 25 MiB of memory

template<class Number>
bool parse_number(std::string_view word, Number& number) {
  const auto [end, failure] = std::from_chars(word.data(), word.data() + word.size(), number);
  return failure == std::errc() && end == word.data() + word.size();
}

double seconds_of(clock::wall_time time) { return std::chrono::duration<double>(time.time_since_epoch()).count(); }

}  // namespace

checkpoint_directory::checkpoint_directory(std::string path, const saver_options& options, std::shared_ptr<io::file_system> files,
                                           std::shared_ptr<clock> time, directory_access access)
    : path_(std::move(path)), options_(options), files_(std::move(files)), time_(std::move(time)) {
  const bool is_own = access == directory_access::own;
  if (is_own) { value_or_throw(files_->create_directories(path_)); }
  canonical_ = value_or_throw(files_->canonical(path_));
  if (is_own) { lock_ = value_or_throw(files_->lock(io::join_path(canonical_, lock_name))); }
  for (const auto& prefix : options_.pinned) { pinned_.insert(name_of(prefix)); }
  load(access);
}

/// Throws `failed_precondition_error` if the locked directory was moved and another one has its path. Otherwise files of two
/// directories would be mixed.
void checkpoint_directory::check_is_in_place() const {
  if (!lock_ || lock_->is_at(io::join_path(path_, lock_name))) { return; }
  throw failed_precondition_error(
      "the directory that this saver locked was moved or removed, and another directory now has its path "
      "and is not changed; stop this run, or move the original directory back",
      path_);
}

void checkpoint_directory::load(directory_access access) {
  const auto state = read_state_file(*files_, path_);
  leftovers_ = find_leftovers(*files_, path_, options_.basename, names_in(*files_, path_), claimed_without_index(state));
  if (access == directory_access::own) { sweep_leftovers(*files_, path_, leftovers_); }
  load_list(state);
  load_unlisted(state);
  load_metrics();
  if (last_preserved_ == 0) { last_preserved_ = seconds_now(); }
  check_clock();
  if (retention_is_due_) { list_at_start(); }
}

/// Corrects times in the future, which occur after the clock was set back. Otherwise `keep_every_n_hours` would have no effect
/// until the clock reaches those times again. If hours are counted, the checkpoints in the list are kept permanently and counting
/// starts again now.
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

std::string checkpoint_directory::metrics_path() const { return io::join_path(path_, fmt::format("{}.metrics", options_.basename)); }

/// Adds a complete checkpoint as the newest. Returns false if it was deleted in the meantime or is damaged.
bool checkpoint_directory::add_unlisted(const std::string& prefix) {
  auto found = inspect(prefix);
  if (!found) { return false; }
  const std::lock_guard lock(mutex_);
  list_.push_back(std::move(*found));
  return true;
}

/// Returns true if all checksums match.
bool checkpoint_directory::is_whole(const std::string& prefix) const {
  try {
    checkpoint_reader(prefix, files_).verify();
    return true;
  } catch (const error& failure) {
    if (!is_damage(failure)) { throw; }
    log_warning(fmt::format("checkpoint {} is damaged; it is not listed and not deleted: {}", prefix, failure.what()));
    return false;
  }
}

/// Returns the list entry of a checkpoint that exists and whose index and file sizes are valid. Returns nothing for a damaged one,
/// so that it is not counted.
std::optional<listed_checkpoint> checkpoint_directory::inspect(const std::string& prefix) const {
  try {
    const auto index = load_index(*files_, prefix);
    check_places(index, open_data_files(*files_, prefix, index.header.num_shards), format::index_name(prefix));
    const auto is_version = [](const checkpoint_entry& entry) { return entry.name == own_version_name; };
    listed_checkpoint made{.name = name_of(prefix), .step = step_of_checkpoint(prefix).value_or(0)};
    made.is_ours = io::base_name(prefix) == made.name && std::ranges::any_of(index.entries, is_version) &&
                   step_in_name(made.name, options_.basename, "").has_value();
    made.time = seconds_of(value_or_throw(files_->stat(format::index_name(prefix))).modified);
    return made;
  } catch (const not_found_error&) {
    return std::nullopt;  // deleted in the meantime, by retention or by another process
  } catch (const error& failure) {
    if (!is_damage(failure)) { throw; }
    log_warning(fmt::format("checkpoint {} is damaged; it is not counted and not deleted: {}", prefix, failure.what()));
    return std::nullopt;
  }
}

/// Returns the names in the state file if the index of the newest one is missing. Neither retention nor a kill removes that index.
/// Another program must have removed it, and the data that the state file names may be all that is left. Such data is not a
/// leftover.
std::set<std::string, std::less<>> checkpoint_directory::claimed_without_index(const std::optional<state_file>& state) const {
  if (!state || value_or_throw(files_->exists(format::index_name(state->prefixes.back())))) { return {}; }
  std::set<std::string, std::less<>> claimed;
  for (const auto& prefix : state->prefixes) { claimed.insert(name_of(prefix)); }
  return claimed;
}

/// Without a valid state file the list stays empty, so no existing checkpoint will be deleted.
void checkpoint_directory::load_list(const std::optional<state_file>& state) {
  if (!state) { return; }
  std::map<std::string, double> times;
  const auto& paths = state->content.all_model_checkpoint_paths;
  const auto& stamps = state->content.all_model_checkpoint_timestamps;
  for (std::size_t i = 0; i < stamps.size(); ++i) { times[io::base_name(paths[i])] = stamps[i]; }
  last_preserved_ = state->content.last_preserved_timestamp;
  newest_in_file_ = name_of(state->prefixes.back());
  for (const auto& prefix : state->prefixes) {
    auto found = inspect(prefix);
    if (!found) { continue; }
    std::erase_if(list_, [&](const auto& entry) { return entry.name == found->name; });  // listed twice with different paths
    const auto time = times.find(io::base_name(prefix));
    if (time != times.end()) { found->time = time->second; }
    list_.push_back(std::move(*found));
  }
}

/// Adds checkpoints that a killed save finished and did not list. Determines the highest save number.
void checkpoint_directory::load_unlisted(const std::optional<state_file>& state) {
  const auto unlisted = find_unlisted(files_, path_, options_.basename, state);
  for (const auto& prefix : unlisted.newer) {
    if (is_whole(prefix)) { retention_is_due_ = add_unlisted(prefix) || retention_is_due_; }
  }
  const auto listed_number = state ? newest_save_number(files_, state->prefixes).value_or(0) : 0;
  last_save_number_ = std::max(unlisted.last_number, listed_number);
}

void checkpoint_directory::load_metrics() {
  const auto text = io::read_text_file(*files_, metrics_path(), max_metrics_bytes);
  if (!text && text.error().code == errc::not_found) { return; }
  if (!text) { throw_status(text.error()); }  // without the metrics the best checkpoints would be deleted
  std::size_t damaged = 0;
  std::string_view rest = *text;
  while (!rest.empty()) {
    const auto line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    const auto blank = line.find(' ');
    std::int64_t step = 0;
    double value = 0;
    if (blank != std::string_view::npos && parse_number(line.substr(0, blank), step) && parse_number(line.substr(blank + 1), value)) {
      metrics_[step] = value;
    } else {
      ++damaged;
    }
    if (metrics_.size() > max_metrics) { throw data_loss_error("the metrics file has too many metrics; move it away", metrics_path()); }
  }
  if (damaged != 0) { log_warning(fmt::format("{}: {} lines are not a step and a number; they are ignored", metrics_path(), damaged)); }
  durable_metrics_ = metrics_;
}

/// Writes the metrics of listed checkpoints and of steps that may still be saved.
void checkpoint_directory::write_metrics() {
  const std::lock_guard one(writing_metrics_);
  std::map<std::int64_t, double> written;
  std::string text;
  {
    const std::lock_guard lock(mutex_);
    if (!std::exchange(metrics_changed_, false)) { return; }
    const auto newest = list_.empty() ? std::int64_t{-1} : list_.back().step;
    std::erase_if(metrics_, [&](const auto& metric) {
      return metric.first <= newest && std::ranges::find(list_, metric.first, &listed_checkpoint::step) == list_.end();
    });
    written = metrics_;
  }
  for (const auto& [step, value] : written) { text += fmt::format("{} {}\n", step, value); }
  check_is_in_place();
  value_or_throw(io::write_file_atomically(*files_, metrics_path(), text));
  const std::lock_guard lock(mutex_);
  durable_metrics_ = std::move(written);
}

void checkpoint_directory::keep_metrics() noexcept {
  try {
    write_metrics();
  } catch (const std::exception& failure) {
    log_warning(fmt::format("{}: could not save the reported metrics: {}", path_, failure.what()));
    const std::lock_guard lock(mutex_);
    metrics_changed_ = true;
  }
}

void checkpoint_directory::close() noexcept {
  keep_metrics();
  if (lock_ && retention_is_due_) { tidy(); }
  lock_.reset();
}

}  // namespace stepwell::detail
