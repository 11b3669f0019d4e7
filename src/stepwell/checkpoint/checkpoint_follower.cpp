// SPDX-License-Identifier: Apache-2.0
#include "stepwell/checkpoint/checkpoint_follower.hpp"

#include "stepwell/base/error.hpp"
#include "stepwell/base/log.hpp"
#include "stepwell/base/time_after.hpp"
#include "stepwell/checkpoint/checkpoint_reader.hpp"
#include "stepwell/checkpoint/latest_checkpoint.hpp"
#include "stepwell/checkpoint/state_file.hpp"
#include "stepwell/checkpoint/stored_checkpoint.hpp"
#include "stepwell/format/bundle.hpp"
#include "stepwell/io/path.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <utility>

namespace stepwell::detail {
namespace {

/// Nothing where there is no such file.
std::optional<clock::wall_time> modified(io::file_system& files, const std::string& path) {
  const auto found = files.stat(path);
  if (!found && found.error().code == errc::not_found) { return std::nullopt; }
  return value_or_throw(result<io::file_info>(found)).modified;
}

}  // namespace

checkpoint_follower::checkpoint_follower(std::string directory, new_checkpoint_options options)
    : directory_(std::move(directory)), options_(std::move(options)) {
  if (!(options_.seconds_to_sleep.count() > 0)) {
    throw invalid_argument_error(
        fmt::format("following checkpoints: invalid seconds_to_sleep={}; it must be above zero", options_.seconds_to_sleep.count()));
  }
  if (!options_.clock) { options_.clock = system_clock(); }
  if (!options_.file_system) { options_.file_system = io::posix_file_system(); }
}

std::optional<std::string> checkpoint_follower::wait_for_next() {
  log_info("Waiting for new checkpoint at " + directory_);
  const auto until = options_.timeout ? time_after(time().now(), *options_.timeout) : clock::time_point::max();
  while (!stop_requested()) {
    if (auto found = look()) {
      log_info("Found new checkpoint at " + *found);
      return found;
    }
    const auto now = time().now();
    if (now >= until) { return std::nullopt; }
    sleep_until(std::min(until, time_after(now, options_.seconds_to_sleep)));
  }
  return std::nullopt;
}

/// What is new, whole, and now seen.
std::optional<std::string> checkpoint_follower::look() {
  auto newest = newest_claimed();
  if (!newest) { return std::nullopt; }
  const auto written = modified(*options_.file_system, format::index_name(*newest));
  if (!written) { return std::nullopt; }  // not there yet, or gone already
  const auto known = seen_.find(*newest);
  if (known != seen_.end() && (!known->second || known->second == written)) { return std::nullopt; }
  if (!is_whole(*newest)) { return std::nullopt; }
  seen_[*newest] = written;
  return newest;
}

/// What the state file names as the newest. One that does not parse is complained about once, not at each look.
std::optional<std::string> checkpoint_follower::newest_claimed() {
  const auto written = modified(*options_.file_system, io::join_path(directory_, state_file_name));
  if (!written || written == unreadable_) { return std::nullopt; }
  const auto state = read_state_file(*options_.file_system, directory_);
  if (state) { return state->prefixes.back(); }
  unreadable_ = written;
  return std::nullopt;
}

/// One that was damaged is read again only when its files have changed: somebody may be copying it here.
bool checkpoint_follower::is_whole(const std::string& prefix) {
  auto files = fingerprint(prefix);
  if (damaged_ == files) { return false; }
  try {
    checkpoint_reader(prefix, options_.file_system).verify();
    return true;
  } catch (const error& failure) {
    if (!is_damage(failure)) { throw; }
    if (modified(*options_.file_system, format::index_name(prefix))) {  // not deleted meanwhile
      log_warning(fmt::format("checkpoint {} is damaged and passed over: {}", prefix, failure.what()));
    }
    damaged_ = std::move(files);
    return false;
  }
}

/// Changes whenever a file of this checkpoint does.
std::string checkpoint_follower::fingerprint(const std::string& prefix) const {
  const auto directory = io::parent_directory(prefix);
  const auto start = io::base_name(prefix) + ".";
  std::string all = prefix;
  for (const auto& name : names_in(*options_.file_system, directory)) {
    if (!name.starts_with(start)) { continue; }
    const auto file = options_.file_system->stat(io::join_path(directory, name));
    if (file) { all.append(fmt::format("\n{} {} {}", name, file->size, file->modified.time_since_epoch().count())); }
  }
  return all;
}

bool checkpoint_follower::sleep_until(clock::time_point when) const {
  std::mutex mutex;
  std::condition_variable stopped;
  const std::stop_callback wake(options_.stop_token, [&] {
    { const std::lock_guard held(mutex); }
    stopped.notify_all();
  });
  std::unique_lock lock(mutex);
  time().wait_until(lock, stopped, when, [&] { return stop_requested() || time().now() >= when; });
  return !stop_requested();
}

}  // namespace stepwell::detail
