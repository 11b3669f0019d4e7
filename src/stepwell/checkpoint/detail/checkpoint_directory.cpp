// SPDX-License-Identifier: Apache-2.0
//
// Saving, restoring and retention. Loading is in checkpoint_directory_load.cpp.
#include "stepwell/checkpoint/detail/checkpoint_directory.hpp"

#include "stepwell/base/error.hpp"
#include "stepwell/base/log.hpp"
#include "stepwell/base/trace.hpp"
#include "stepwell/checkpoint/checkpoint_writer.hpp"
#include "stepwell/checkpoint/detail/leftovers.hpp"
#include "stepwell/checkpoint/detail/saver_notes.hpp"
#include "stepwell/checkpoint/latest_checkpoint.hpp"
#include "stepwell/format/checkpoint/bundle.hpp"
#include "stepwell/format/checkpoint/checkpoint_state.hpp"
#include "stepwell/io/atomic_file.hpp"
#include "stepwell/io/path.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <chrono>
#include <utility>

namespace stepwell::detail {
namespace {

constexpr std::int32_t own_version = 1;

}  // namespace

std::string checkpoint_directory::path_of(std::string_view name) const {
  return name.starts_with('/') ? std::string(name) : io::join_path(path_, name);
}

/// Returns the name relative to the directory if the checkpoint is inside it, whichever path leads there. Otherwise returns the
/// full path.
std::string checkpoint_directory::name_of(const std::string& prefix) const {
  if (prefix.find('/') == std::string::npos) { return prefix; }
  const auto parent = files_->canonical(io::parent_directory(prefix));
  if (parent && *parent == canonical_) { return io::base_name(prefix); }
  const auto inside = io::join_path(path_, "");
  if (prefix.starts_with(inside)) { return prefix.substr(inside.size()); }
  return parent ? io::join_path(*parent, io::base_name(prefix)) : prefix;
}

double checkpoint_directory::seconds_now() const { return std::chrono::duration<double>(time_->wall_now().time_since_epoch()).count(); }

std::vector<std::string> checkpoint_directory::checkpoints() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> prefixes;
  for (const auto& entry : list_) { prefixes.push_back(path_of(entry.name)); }
  return prefixes;
}

void checkpoint_directory::pin(const std::string& prefix) {
  auto name = name_of(prefix);
  const std::lock_guard lock(mutex_);
  pinned_.insert(std::move(name));
}

void checkpoint_directory::report_metric(std::int64_t step, double value) {
  const std::lock_guard lock(mutex_);
  metrics_[step] = value;
  metrics_changed_ = true;
}

std::optional<checkpoint_reader> checkpoint_directory::restore_newest() {
  const std::lock_guard one(one_at_a_time_);
  auto newest = find_newest_whole(path_, options_.basename, files_);
  if (!newest) { return newest; }
  const auto name = name_of(newest->prefix());
  {
    const std::lock_guard lock(mutex_);
    restored_from_ = name;  // earlier ones lose protection, so that many recoveries do not fill the disk
    // The newer ones in the list are damaged. From now on they are neither counted nor deleted.
    const auto at = std::ranges::find(list_, name, &listed_checkpoint::name);
    list_.erase(at != list_.end() ? std::next(at) : list_.begin(), list_.end());
  }
  if (list_.empty()) { add_unlisted(newest->prefix()); }  // needs no mutex: only saving and restoring change the list
  list_at_start();
  return newest;
}

/// Makes the state file name the checkpoint from which this saver continues, unless it already does. The previous process may have
/// been killed before it wrote the state file, or the checkpoints in the state file may be damaged.
void checkpoint_directory::list_at_start() noexcept {
  std::string newest;
  try {
    {
      const std::lock_guard lock(mutex_);
      if (!lock_ || list_.empty() || list_.back().name == newest_in_file_) { return; }
      newest = list_.back().name;
    }
    check_is_in_place();
    write_state();
    log_info(fmt::format("{}: the state file now names {} as the newest checkpoint", path_, newest));
  } catch (const std::exception& failure) {
    log_warning(
        fmt::format("{}: could not write the state file, which does not name {} as the newest checkpoint yet; the next save "
                    "writes it: {}",
                    path_, newest, failure.what()));
  }
}

saved_checkpoint checkpoint_directory::write(const snapshot& taken, const std::function<void()>& before_commit) {
  const std::lock_guard one(one_at_a_time_);
  const auto start = time_->now();
  const auto name = fmt::format("{}-{:0{}}", options_.basename, taken.step(), options_.pad_step_number ? 8 : 1);
  trace_span span("save", "checkpoint");
  if (span) { span.argument("checkpoint", path_of(name)); }
  span.argument("bytes", taken.size_bytes());
  try {
    check_is_in_place();
    write_tensors(name, taken, before_commit);
    add_to_list(name, taken.step());
    write_state();
  } catch (const error& failure) { throw_status(save_failure(failure.cause(), name)); }
  return {path_of(name), taken.step(), taken.size_bytes(), time_->now() - start};
}

status checkpoint_directory::save_failure(const status& cause, const std::string& name) const {
  const auto is_there = files_->exists(path_);
  const bool is_gone = is_there && !*is_there;
  return {cause.code,
          fmt::format(
              "could not save this checkpoint; {}: {}{}{}",
              is_gone ? fmt::format("Parent directory of {} doesn't exist, can't save; the directory was removed while it was in use", name)
                      : "earlier checkpoints are unchanged",
              cause.place, cause.place.empty() ? "" : ": ", cause.message),
          path_of(name)};
}

void checkpoint_directory::write_tensors(const std::string& name, const snapshot& taken, const std::function<void()>& before_commit) {
  const auto names = value_or_throw(files_->list(path_));
  const auto shards = free_shard_count(names, name, options_.shards);
  checkpoint_writer writer(path_of(name), files_, shards);
  for (const auto& entry : taken.entries()) { writer.add(entry.name, {entry.dtype, entry.shape, entry.bytes}); }
  const std::int64_t number = ++last_save_number_;
  writer.add(std::string(own_version_name), {dtype::int32, {}, std::as_bytes(std::span(&own_version, 1))});
  writer.add(std::string(save_number_name), {dtype::int64, {}, std::as_bytes(std::span(&number, 1))});
  writer.commit(before_commit);
  remove_data_files(*files_, path_, names, name, shards);
}

void checkpoint_directory::add_to_list(const std::string& name, std::int64_t step) {
  const std::lock_guard lock(mutex_);
  check_clock();
  std::erase_if(list_, [&](const auto& entry) { return entry.name == name; });
  list_.push_back({.name = name, .step = step, .time = seconds_now(), .is_ours = true});
}

void checkpoint_directory::write_state() {
  const trace_span span("write state file", "checkpoint");
  format::checkpoint_state state;
  {
    const std::lock_guard lock(mutex_);
    if (list_.empty()) { return; }
    state.model_checkpoint_path = list_.back().name;
    state.last_preserved_timestamp = last_preserved_;
    for (const auto& entry : list_) {
      if (entry.is_kept && &entry != &list_.back()) { continue; }
      state.all_model_checkpoint_paths.push_back(entry.name);
      state.all_model_checkpoint_timestamps.push_back(entry.time);
    }
  }
  value_or_throw(io::write_file_atomically(*files_, io::join_path(path_, state_file_name), encode(state)));
  newest_in_file_ = state.model_checkpoint_path;
}

std::vector<listed_checkpoint> checkpoint_directory::list_for_retention() const {
  auto list = list_;
  for (auto& entry : list) {
    entry.is_protected = pinned_.contains(entry.name) || entry.name == restored_from_;
    const auto metric = metrics_.find(entry.step);
    if (metric != metrics_.end()) { entry.metric = metric->second; }
    const auto durable = durable_metrics_.find(entry.step);
    if (durable != durable_metrics_.end()) { entry.durable_metric = durable->second; }
  }
  return list;
}

void checkpoint_directory::tidy() noexcept {
  const std::lock_guard one(one_at_a_time_);
  const trace_span span("tidy", "checkpoint");
  keep_metrics();
  retention_is_due_ = false;
  try {
    retain();
  } catch (const std::exception& failure) {
    log_warning(fmt::format("{}: could not remove old checkpoints, will retry after the next save: {}", path_, failure.what()));
  }
}

void checkpoint_directory::prune() {
  const std::lock_guard one(one_at_a_time_);
  retain();
}

retention_plan checkpoint_directory::plan() const {
  const std::lock_guard lock(mutex_);
  return plan_locked();
}

std::vector<listed_checkpoint> checkpoint_directory::listed() const {
  const std::lock_guard lock(mutex_);
  return list_for_retention();
}

retention_plan checkpoint_directory::plan_locked() const {
  const auto most = options_.max_to_keep.enabled();
  const retention_rules rules{most ? std::optional(static_cast<std::size_t>(*most)) : std::nullopt, options_.keep_every_n_hours.enabled(),
                              options_.keep_best};
  return plan_retention(list_for_retention(), rules, last_preserved_);
}

/// Removes each index while the state file still lists it, then removes the checkpoint from the list. So a kill in between never
/// leaves a complete checkpoint that is unlisted. The data is removed last. Data without an index is a leftover, which is removed
/// at the next start.
void checkpoint_directory::retain() {
  retention_plan plan;
  {
    const std::lock_guard lock(mutex_);
    plan = plan_locked();
    if (plan.listed.size() == list_.size()) { return; }
  }
  for (const auto& entry : plan.deleted) {
    const auto removed = files_->remove(format::index_name(path_of(entry.name)));
    if (!removed && removed.error().code != errc::not_found) { throw_status(removed.error()); }
  }
  {
    const std::lock_guard lock(mutex_);
    list_ = std::move(plan.listed);
    last_preserved_ = plan.last_preserved;
  }
  write_state();  // syncs the directory, so that no index can reappear after its data is removed
  const auto names = value_or_throw(files_->list(path_));
  for (const auto& entry : plan.deleted) { remove_data_files(*files_, path_, names, entry.name, 0); }
}

}  // namespace stepwell::detail
