// SPDX-License-Identifier: Apache-2.0
#include "stepwell/checkpoint/detail/checkpoint_follower.hpp"

#include "stepwell/base/detail/time_after.hpp"
#include "stepwell/base/error.hpp"
#include "stepwell/base/log.hpp"
#include "stepwell/checkpoint/checkpoint_reader.hpp"
#include "stepwell/checkpoint/detail/state_file.hpp"
#include "stepwell/checkpoint/detail/stored_checkpoint.hpp"
#include "stepwell/checkpoint/latest_checkpoint.hpp"
#include "stepwell/format/checkpoint/bundle.hpp"
#include "stepwell/io/path.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <utility>

namespace stepwell::detail {
namespace {

/// Returns the modification time of a file, or nothing if it does not exist.
std::optional<clock::wall_time> modified(io::file_system& files, const std::string& path) {
  const auto found = files.stat(path);
  if (!found && found.error().code == errc::not_found) { return std::nullopt; }
  return value_or_throw(result<io::file_info>(found)).modified;
}

}  // namespace

checkpoint_follower::checkpoint_follower(std::string directory, new_checkpoint_options options, bool all_listed,
                                         std::stop_token cancel_token)
    : directory_(std::move(directory)), options_(std::move(options)), all_listed_(all_listed), cancel_token_(std::move(cancel_token)) {
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
  while (!cancel_token_.stop_requested()) {
    const bool is_last = options_.stop_token.stop_requested();  // read before the poll, which then sees everything saved before the stop
    if (auto found = look(is_last)) {
      log_info("Found new checkpoint at " + *found);
      return found;
    }
    if (is_last) { return std::nullopt; }
    const auto now = time().now();
    if (now >= until && !is_woken()) { return std::nullopt; }
    sleep_until(std::min(until, time_after(now, options_.seconds_to_sleep)));
  }
  return std::nullopt;
}

/// Returns the first new and complete checkpoint, and marks it as returned.
std::optional<std::string> checkpoint_follower::look(bool is_last) {
  if (is_last && !last_claims_) { last_claims_ = claims(); }
  for (const auto& prefix : last_claims_ ? *last_claims_ : claims()) {
    if (is_new(prefix)) { return prefix; }
    if (cancel_token_.stop_requested()) { break; }
  }
  return std::nullopt;
}

bool checkpoint_follower::is_new(const std::string& prefix) {
  const auto written = modified(*options_.file_system, format::index_name(prefix));
  if (!written) { return false; }  // not written yet, or already deleted
  const auto known = seen_.find(prefix);
  if (known != seen_.end() && (!known->second || known->second == written)) { return false; }
  if (!is_whole(prefix)) { return false; }
  seen_[prefix] = written;
  return true;
}

/// Returns the listed checkpoints, or only the newest. A state file that cannot be parsed causes one warning, not one for each poll.
std::vector<std::string> checkpoint_follower::claims() {
  const auto written = modified(*options_.file_system, io::join_path(directory_, state_file_name));
  if (!written || written == unreadable_) { return {}; }
  auto state = read_state_file(*options_.file_system, directory_);
  if (!state) {
    unreadable_ = written;
    return {};
  }
  return all_listed_ ? std::move(state->prefixes) : std::vector{state->prefixes.back()};
}

/// Returns true if all checksums match. A damaged checkpoint is read again only after its files have changed, because it may still
/// be in the process of being copied.
bool checkpoint_follower::is_whole(const std::string& prefix) {
  auto files = fingerprint(prefix);
  if (damaged_.contains(files)) { return false; }
  try {
    checkpoint_reader(prefix, options_.file_system).verify();
    return true;
  } catch (const error& failure) {
    if (!is_damage(failure)) { throw; }
    if (modified(*options_.file_system, format::index_name(prefix))) {  // not deleted in the meantime
      log_warning(fmt::format("checkpoint {} is damaged and skipped: {}", prefix, failure.what()));
    }
    damaged_.insert(std::move(files));
    return false;
  }
}

/// Returns a string that changes when a file of this checkpoint changes.
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

void checkpoint_follower::sleep_until(clock::time_point when) const {
  std::mutex mutex;
  std::condition_variable woken;
  const auto wake = [&] {
    { const std::lock_guard held(mutex); }
    woken.notify_all();
  };
  const std::stop_callback at_stop(options_.stop_token, wake);
  const std::stop_callback at_cancellation(cancel_token_, wake);
  std::unique_lock lock(mutex);
  time().wait_until(lock, woken, when, [&] { return is_woken() || time().now() >= when; });
}

}  // namespace stepwell::detail
