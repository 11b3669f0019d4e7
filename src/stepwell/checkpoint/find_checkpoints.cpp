// SPDX-License-Identifier: Apache-2.0
#include "stepwell/checkpoint/find_checkpoints.hpp"

#include "stepwell/base/cadence.hpp"
#include "stepwell/base/detail/failure_text.hpp"
#include "stepwell/base/error.hpp"
#include "stepwell/base/log.hpp"
#include "stepwell/checkpoint/detail/checkpoint_directory.hpp"
#include "stepwell/checkpoint/detail/stored_checkpoint.hpp"
#include "stepwell/format/checkpoint/bundle.hpp"
#include "stepwell/io/file_system.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <ranges>
#include <set>
#include <utility>

namespace stepwell {
namespace {

std::shared_ptr<io::file_system> or_real(std::shared_ptr<io::file_system> files) {
  return files ? std::move(files) : io::posix_file_system();
}

/// Logs why checkpoints are skipped. After the first 20 it only counts them, because a state file can list thousands.
class damage_report {
public:
  void add(const std::string& prefix, const error& failure) {
    is_short_of_memory_ = is_short_of_memory_ || detail::is_memory_shortage(failure.cause());
    if (++count_ > most) { return; }
    log_warning(fmt::format("checkpoint {} is damaged and skipped: {}", prefix, failure.what()));
    text_.append("\n  ").append(prefix).append(": ").append(failure.what());
    if (count_ == most) { log_warning("further checkpoints that are damaged or missing are skipped without a message"); }
  }

  [[nodiscard]] std::string text() const { return count_ > most ? fmt::format("{}\n  and {} more", text_, count_ - most) : text_; }
  [[nodiscard]] bool is_short_of_memory() const noexcept { return is_short_of_memory_; }

private:
  static constexpr std::size_t most = 20;
  std::size_t count_ = 0;
  bool is_short_of_memory_ = false;
  std::string text_;
};

/// Opens the checkpoints of a directory, newest first.
class newest_search final : public checkpoint_search_result, public std::enable_shared_from_this<newest_search> {
public:
  newest_search(const std::string& directory, std::string_view basename, std::shared_ptr<io::file_system> files,
                std::function<void(const checkpoint_reader&)> on_accept)
      : directory_(directory), files_(std::move(files)), on_accept_(std::move(on_accept)) {
    const auto state = detail::read_state_file(*files_, directory);
    const auto unlisted = detail::find_unlisted(files_, directory, basename, state);
    claims_ = unlisted.older;  // oldest first
    if (state) { claims_.insert(claims_.end(), state->prefixes.begin(), state->prefixes.end()); }
    claims_.insert(claims_.end(), unlisted.newer.begin(), unlisted.newer.end());
    left_ = claims_.size();
  }

  /// Returns the next candidate, or nothing if there was none at all.
  [[nodiscard]] std::optional<checkpoint_reader> next() {
    while (left_ > 0) {
      const auto& prefix = claims_[--left_];
      if (const auto has_index = files_->exists(format::index_name(prefix));
          has_index && !*has_index) {  // without the cost of an exception
        skip(prefix, error(detail::no_index(*files_, prefix)));
        continue;
      }
      try {
        checkpoint_reader reader(prefix, files_);
        reader.set_search(shared_from_this());
        return reader;
      } catch (const error& failure) { skip(prefix, failure); }
    }
    if (claims_.empty()) { return std::nullopt; }
    if (damages_.is_short_of_memory()) {
      throw resource_exhausted_error(
          fmt::format("none of the {} checkpoints in this directory could be read; make more memory available, or "
                      "move the damaged ones away:{}",
                      claims_.size(), damages_.text()),
          directory_);
    }
    throw data_loss_error(fmt::format("none of the {} checkpoints in this directory is intact; move them away to start from the "
                                      "beginning, or copy an intact one into the directory:{}",
                                      claims_.size(), damages_.text()),
                          directory_);
  }

  checkpoint_reader next_after(const checkpoint_reader& damaged, const error& failure) override {
    skip(damaged.prefix(), failure);
    return std::move(*next());
  }
  void accept(const checkpoint_reader& restored) override {
    if (on_accept_) { on_accept_(restored); }
  }

private:
  void skip(const std::string& prefix, const error& failure) {
    if (!detail::is_damage(failure)) { throw_status(failure.cause()); }
    damages_.add(prefix, failure);
  }

  std::string directory_;
  std::shared_ptr<io::file_system> files_;
  std::function<void(const checkpoint_reader&)> on_accept_;
  std::vector<std::string> claims_;
  std::size_t left_ = 0;
  damage_report damages_;
};

/// Polls a directory and returns each checkpoint once.
class checkpoint_follower {
public:
  checkpoint_follower(const std::string& directory, checkpoints_iterator_options options)
      : directory_(value_or_throw(io::absolute_path(directory))), options_(std::move(options)) {
    auto& wait = options_.wait;
    if (!(wait.seconds_to_sleep.count() > 0)) {
      throw invalid_argument_error(
          fmt::format("following checkpoints: invalid seconds_to_sleep={}; it must be above zero", wait.seconds_to_sleep.count()));
    }
    detail::refuse_negative("timeout", wait.timeout);
    detail::refuse_negative("min_interval_secs", options_.min_interval_secs);
    if (!wait.clock) { wait.clock = system_clock(); }
    wait.file_system = or_real(std::move(wait.file_system));
  }

  /// Marks every checkpoint named `prefix` as already returned.
  void skip(const std::string& prefix) { seen_[prefix] = std::nullopt; }

  /// Blocks until there is a new complete checkpoint, and returns it. Returns nothing after the timeout or a cancellation. A stop ends the
  /// wait. After a stop one last poll is made; the checkpoints listed at that moment are still returned, and none after them.
  [[nodiscard]] std::optional<std::string> wait_for_next() {
    log_info("Waiting for new checkpoint at " + directory_);
    const auto until = options_.wait.timeout ? detail::time_after(time().now(), *options_.wait.timeout) : clock::time_point::max();
    while (!options_.cancel_token.stop_requested()) {
      const bool is_last = options_.wait.stop_token.stop_requested();  // read before the poll, which then sees all saves before the stop
      if (auto prefix = look(is_last)) {
        log_info("Found new checkpoint at " + *prefix);
        return prefix;
      }
      if (is_last) { return std::nullopt; }
      const auto now = time().now();
      if (now >= until && !is_woken()) { return std::nullopt; }
      sleep_until(std::min(until, detail::time_after(now, options_.wait.seconds_to_sleep)));
    }
    return std::nullopt;
  }

  /// Blocks until `when`, a stop or a cancellation.
  void sleep_until(clock::time_point when) const {
    std::mutex mutex;
    std::condition_variable woken;
    const auto wake = [&] {
      { const std::lock_guard held(mutex); }
      woken.notify_all();
    };
    const std::stop_callback at_stop(options_.wait.stop_token, wake);
    const std::stop_callback at_cancellation(options_.cancel_token, wake);
    std::unique_lock lock(mutex);
    time().wait_until(lock, woken, when, [&] { return is_woken() || time().now() >= when; });
  }

  /// Returns true if no more checkpoints will be returned: the last poll after a stop was made, or the follower was cancelled.
  [[nodiscard]] bool is_at_end() const noexcept { return last_claims_.has_value() || options_.cancel_token.stop_requested(); }
  [[nodiscard]] clock& time() const noexcept { return *options_.wait.clock; }
  [[nodiscard]] const checkpoints_iterator_options& options() const noexcept { return options_; }

private:
  [[nodiscard]] bool is_woken() const noexcept {
    return options_.wait.stop_token.stop_requested() || options_.cancel_token.stop_requested();
  }
  auto modified(const std::string& path) const { return detail::modified_time(*options_.wait.file_system, path); }

  /// Returns the first new and complete checkpoint, and marks it as returned.
  [[nodiscard]] std::optional<std::string> look(bool is_last) {
    if (is_last && !last_claims_) { last_claims_ = claims(); }
    for (const auto& prefix : last_claims_ ? *last_claims_ : claims()) {
      if (is_new(prefix)) { return prefix; }
      if (options_.cancel_token.stop_requested()) { break; }
    }
    return std::nullopt;
  }

  [[nodiscard]] bool is_new(const std::string& prefix) {
    const auto written = modified(format::index_name(prefix));
    if (!written) { return false; }  // not written yet, or already deleted
    const auto known = seen_.find(prefix);
    if (known != seen_.end() && (!known->second || known->second == written)) { return false; }
    if (!is_whole(prefix)) { return false; }
    seen_[prefix] = written;
    return true;
  }

  /// Returns the listed checkpoints, or only the newest. A state file that cannot be parsed causes one warning, not one for each poll.
  [[nodiscard]] std::vector<std::string> claims() {
    const auto written = modified(io::join_path(directory_, state_file_name));
    if (!written || written == unreadable_) { return {}; }
    auto state = detail::read_state_file(*options_.wait.file_system, directory_);
    if (!state) {
      unreadable_ = written;
      return {};
    }
    return options_.all_listed ? std::move(state->prefixes) : std::vector{state->prefixes.back()};
  }

  /// Returns true if all checksums match. A damaged checkpoint is read again only after its files have changed, because it may still
  /// be in the process of being copied.
  [[nodiscard]] bool is_whole(const std::string& prefix) {
    auto files = fingerprint(prefix);
    if (damaged_.contains(files)) { return false; }
    try {
      checkpoint_reader(prefix, options_.wait.file_system).verify();
      return true;
    } catch (const error& failure) {
      if (!detail::is_damage(failure)) { throw; }
      if (modified(format::index_name(prefix))) {  // not deleted in the meantime
        log_warning(fmt::format("checkpoint {} is damaged and skipped: {}", prefix, failure.what()));
      }
      damaged_.insert(std::move(files));
      return false;
    }
  }

  /// Returns a string that changes when a file of this checkpoint changes.
  [[nodiscard]] std::string fingerprint(const std::string& prefix) const {
    const auto directory = io::parent_directory(prefix);
    const auto start = io::base_name(prefix) + ".";
    std::string all = prefix;
    for (const auto& name : detail::names_in(*options_.wait.file_system, directory)) {
      if (!name.starts_with(start)) { continue; }
      const auto file = options_.wait.file_system->stat(io::join_path(directory, name));
      if (file) { all.append(fmt::format("\n{} {} {}", name, file->size, file->modified.time_since_epoch().count())); }
    }
    return all;
  }

  std::string directory_;
  checkpoints_iterator_options options_;
  /// Time at which the index was written, by prefix. Empty if every checkpoint with this name counts as returned.
  std::map<std::string, std::optional<clock::wall_time>> seen_;
  std::set<std::string> damaged_;                        // fingerprints of damaged checkpoints
  std::optional<clock::wall_time> unreadable_;           // modification time of a state file that could not be parsed
  std::optional<std::vector<std::string>> last_claims_;  // the checkpoints listed at the first poll after a stop
};

generator<const std::string&> all_of(std::unique_ptr<checkpoint_follower> follower) {
  const auto& timeout_fn = follower->options().timeout_fn;
  for (;;) {
    auto prefix = follower->wait_for_next();
    while (!prefix && !follower->is_at_end() && timeout_fn && !timeout_fn()) { prefix = follower->wait_for_next(); }
    if (!prefix && !follower->is_at_end() && !timeout_fn) { log_info("Timed-out waiting for a checkpoint."); }
    if (!prefix) { co_return; }
    const auto given_at = follower->time().now();
    co_yield *prefix;
    follower->sleep_until(detail::time_after(given_at, follower->options().min_interval_secs));
  }
}

}  // namespace

std::optional<std::int64_t> step_of_checkpoint(std::string_view prefix) noexcept {
  const auto dash = prefix.rfind('-');
  return dash == std::string_view::npos ? std::nullopt : detail::step_in_name(prefix, prefix.substr(0, dash), "");
}

std::optional<std::string> latest_checkpoint(const std::string& directory, std::shared_ptr<io::file_system> files) {
  files = or_real(std::move(files));
  const auto state = detail::read_state_file(*files, directory);
  if (!state) { return std::nullopt; }
  const auto& newest = state->prefixes.back();
  if (value_or_throw(files->exists(format::index_name(newest)))) { return newest; }
  log_warning(newest + ": the state file names this checkpoint as the newest, but its index is missing");
  return std::nullopt;
}

std::vector<std::string> list_checkpoints(const std::string& directory, std::string_view basename, std::shared_ptr<io::file_system> files) {
  std::vector<std::pair<std::int64_t, std::string>> by_step;
  for (const auto& name : detail::names_in(*or_real(std::move(files)), directory)) {
    if (const auto step = detail::step_in_name(name, basename, format::index_suffix)) {
      by_step.emplace_back(*step, io::join_path(directory, *format::prefix_of_index(name)));
    }
  }
  std::ranges::sort(by_step);
  std::vector<std::string> prefixes;
  for (auto& [step, prefix] : by_step) { prefixes.push_back(std::move(prefix)); }
  return prefixes;
}

std::optional<checkpoint_reader> open_newest(const std::string& directory, std::string_view basename,
                                             std::shared_ptr<io::file_system> files,
                                             std::function<void(const checkpoint_reader&)> on_accept) {
  const auto search = std::make_shared<newest_search>(directory, basename, or_real(std::move(files)), std::move(on_accept));
  return search->next();
}

std::optional<checkpoint_reader> latest_whole_checkpoint(const std::string& directory, std::string_view basename,
                                                         std::shared_ptr<io::file_system> files) {
  auto reader = open_newest(directory, basename, std::move(files));
  while (reader && !reader->is_verified()) {
    try {
      reader->verify();
    } catch (const error& failure) { reader = reader->search()->next_after(*reader, failure); }
  }
  if (reader) { reader->set_search(nullptr); }
  return reader;
}

bool checkpoint_exists(const std::string& prefix, std::shared_ptr<io::file_system> files) {
  return value_or_throw(or_real(std::move(files))->exists(format::index_name(prefix)));
}

std::vector<clock::wall_time> get_checkpoint_mtimes(std::span<const std::string> prefixes, std::shared_ptr<io::file_system> files) {
  files = or_real(std::move(files));
  std::vector<clock::wall_time> times;
  for (const auto& prefix : prefixes) {
    if (const auto modified = detail::modified_time(*files, format::index_name(prefix))) { times.push_back(*modified); }
  }
  return times;
}

void remove_checkpoint(const std::string& prefix, std::shared_ptr<io::file_system> files) {
  files = or_real(std::move(files));
  const auto directory = io::parent_directory(prefix);
  const auto removed = files->remove(format::index_name(prefix));
  if (!removed && removed.error().code != errc::not_found) { throw_status(removed.error()); }
  if (removed) { value_or_throw(files->sync_directory(directory)); }  // so that the index cannot reappear after its data is removed
  detail::remove_data_files(*files, directory, detail::names_in(*files, directory),
                            [name = io::base_name(prefix)](const auto& data) { return data.prefix == name; });
  detail::remove_or_log(*files, prefix + ".meta");
}

std::optional<std::string> wait_for_new_checkpoint(const std::string& checkpoint_dir, std::optional<std::string> last_checkpoint,
                                                   new_checkpoint_options options) {
  checkpoint_follower follower(checkpoint_dir, {.wait = std::move(options)});
  if (last_checkpoint) { follower.skip(*last_checkpoint); }
  return follower.wait_for_next();
}

generator<const std::string&> checkpoints_iterator(std::string checkpoint_dir, checkpoints_iterator_options options) {
  return all_of(std::make_unique<checkpoint_follower>(std::move(checkpoint_dir), std::move(options)));
}

}  // namespace stepwell
