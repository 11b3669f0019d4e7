// SPDX-License-Identifier: Apache-2.0
#include "stepwell/checkpoint/find_checkpoints.hpp"

#include "stepwell/base/cadence.hpp"
#include "stepwell/base/detail/failure_text.hpp"
#include "stepwell/base/detail/locks.hpp"
#include "stepwell/base/error.hpp"
#include "stepwell/base/log.hpp"
#include "stepwell/checkpoint/checkpoint_reader.hpp"
#include "stepwell/checkpoint/detail/beside_writer.hpp"
#include "stepwell/checkpoint/detail/checkpoint_directory.hpp"
#include "stepwell/checkpoint/detail/stored_checkpoint.hpp"
#include "stepwell/format/checkpoint/detail/bundle.hpp"
#include "stepwell/io/file_system.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <condition_variable>
#include <map>
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

/// Opens the checkpoints of a directory, newest first. @see beside_writer.hpp
class newest_search final : public checkpoint_search_result, public std::enable_shared_from_this<newest_search> {
public:
  newest_search(const std::string& directory, std::string_view basename, std::shared_ptr<io::file_system> files,
                std::function<void(const checkpoint_reader&)> on_accept)
      : directory_(directory), basename_(basename), files_(std::move(files)), on_accept_(std::move(on_accept)), claims_(read_claims()),
        left_(claims_.size()) {}

  /// Returns the next candidate, or nothing if there was none at all.
  [[nodiscard]] std::optional<checkpoint_reader> next() {
    auto found = detail::read_beside_writer(directory_, [this]() -> std::optional<std::optional<checkpoint_reader>> {
      auto opened = open_next();
      if (!is_settled()) { return std::nullopt; }
      return opened;
    });
    if (found) { found->set_search(shared_from_this()); }
    if (found || claims_.empty()) { return found; }
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
    judge(damaged.prefix(), failure);
    return std::move(*next());
  }
  void accept(const checkpoint_reader& restored) override {
    if (on_accept_) { on_accept_(restored); }
  }

private:
  /// Returns the candidates, oldest first.
  [[nodiscard]] std::vector<std::string> read_claims() const {
    const auto state = detail::read_state_file(*files_, directory_);
    auto unlisted = detail::find_unlisted(files_, directory_, basename_, state);
    auto claims = std::move(unlisted.older);
    if (state) { claims.insert(claims.end(), state->prefixes.begin(), state->prefixes.end()); }
    claims.insert(claims.end(), unlisted.newer.begin(), unlisted.newer.end());
    return claims;
  }

  [[nodiscard]] bool has_index(const std::string& prefix) const {
    const auto exists = files_->exists(format::index_name(prefix));
    return !exists || *exists;  // a failure to look is reported when the index is opened
  }

  /// Returns the next candidate that can be opened. Collects those without an index in `gone_`.
  [[nodiscard]] std::optional<checkpoint_reader> open_next() {
    while (left_ > 0) {
      const auto& prefix = claims_[--left_];
      if (judged_.contains(prefix)) { continue; }
      if (!has_index(prefix)) {  // without the cost of an exception
        gone_.push_back(prefix);
        continue;
      }
      try {
        return checkpoint_reader(prefix, files_);
      } catch (const not_found_error&) { gone_.push_back(prefix); } catch (const error& failure) {
        judge(prefix, failure);
      }
    }
    return std::nullopt;
  }

  /// Returns true if the candidates in `gone_` are missing: the directory still lists them. Otherwise starts again with its present content.
  [[nodiscard]] bool is_settled() {
    if (gone_.empty()) { return true; }
    auto claims = read_claims();
    const auto gone = std::exchange(gone_, {});
    if (claims == claims_ && std::ranges::none_of(gone, [&](const auto& prefix) { return has_index(prefix); })) {
      for (const auto& prefix : gone) { judge(prefix, error(detail::no_index(*files_, prefix))); }
      return true;
    }
    claims_ = std::move(claims);
    left_ = claims_.size();
    return false;
  }

  void judge(const std::string& prefix, const error& failure) {
    if (!detail::is_damage(failure)) { throw_status(failure.cause()); }
    judged_.insert(prefix);
    damages_.add(prefix, failure);
  }

  std::string directory_;
  std::string basename_;
  std::shared_ptr<io::file_system> files_;
  std::function<void(const checkpoint_reader&)> on_accept_;
  std::vector<std::string> claims_;  // oldest first
  std::size_t left_ = 0;             // the candidates before this one have not been tried
  std::vector<std::string> gone_;    // candidates of `claims_` that were found to have no index
  std::set<std::string> judged_;     // candidates that are damaged or missing
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
  [[nodiscard]] std::optional<checkpoint_reader> wait_for_next() {
    log_info("Waiting for new checkpoint at " + directory_);
    const auto until = options_.wait.timeout ? detail::time_after(time().now(), *options_.wait.timeout) : clock::time_point::max();
    while (!options_.cancel_token.stop_requested()) {
      const bool is_last = options_.wait.stop_token.stop_requested();  // read before the poll, which then sees all saves before the stop
      if (auto found = look(is_last)) {
        log_info("Found new checkpoint at " + found->prefix());
        return found;
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
    detail::checked_mutex mutex;
    std::condition_variable woken;
    const auto wake = [&] {
      { const detail::mutex_lock held(mutex); }
      woken.notify_all();
    };
    const std::stop_callback at_stop(options_.wait.stop_token, wake);
    const std::stop_callback at_cancellation(options_.cancel_token, wake);
    detail::mutex_lock lock(mutex);
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

  /// Returns the first new and complete checkpoint, and marks it as returned. @see beside_writer.hpp
  [[nodiscard]] std::optional<checkpoint_reader> look(bool is_last) {
    return detail::read_beside_writer(directory_, [&]() -> std::optional<std::optional<checkpoint_reader>> {
      if (is_last && !last_claims_) { last_claims_ = claims(); }
      const auto listed = last_claims_ ? *last_claims_ : claims();
      bool has_gone = false;
      for (const auto& prefix : listed) {
        if (auto found = open_if_new(prefix, has_gone)) { return found; }
        if (options_.cancel_token.stop_requested()) { break; }
      }
      if (!has_gone) { return std::optional<checkpoint_reader>(); }
      auto now = claims();
      const bool has_changed = now != listed;
      if (last_claims_) { last_claims_ = std::move(now); }  // without those that have gone, the last ones are those listed now
      if (has_changed) { return std::nullopt; }
      return std::optional<checkpoint_reader>();
    });
  }

  /// Returns the checkpoint if it is complete and was not returned before. Sets `has_gone` if it does not exist.
  [[nodiscard]] std::optional<checkpoint_reader> open_if_new(const std::string& prefix, bool& has_gone) {
    const auto written = modified(format::index_name(prefix));
    if (!written) {  // not written yet, or already deleted
      has_gone = true;
      return std::nullopt;
    }
    const auto known = seen_.find(prefix);
    if (known != seen_.end() && (!known->second || known->second == written)) { return std::nullopt; }
    auto found = open_if_whole(prefix, has_gone);
    if (found) { seen_[prefix] = written; }
    return found;
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

  /// Returns the checkpoint if all checksums match. A damaged checkpoint is read again only after its files have changed, because it may
  /// still be in the process of being copied.
  [[nodiscard]] std::optional<checkpoint_reader> open_if_whole(const std::string& prefix, bool& has_gone) {
    auto files = fingerprint(prefix);
    if (damaged_.contains(files)) { return std::nullopt; }
    try {
      checkpoint_reader found(prefix, options_.wait.file_system);
      found.verify();
      return found;
    } catch (const not_found_error&) { has_gone = true; } catch (const error& failure) {
      if (!detail::is_damage(failure)) { throw; }
      log_warning(fmt::format("checkpoint {} is damaged and skipped: {}", prefix, failure.what()));
      damaged_.insert(std::move(files));
    }
    return std::nullopt;
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

/// Waits for the next checkpoint. Returns nothing at the end of the iteration.
std::optional<checkpoint_reader> next_of(checkpoint_follower& follower) {
  const auto& timeout_fn = follower.options().timeout_fn;
  auto found = follower.wait_for_next();
  while (!found && !follower.is_at_end() && timeout_fn && !timeout_fn()) { found = follower.wait_for_next(); }
  if (!found && !follower.is_at_end() && !timeout_fn) { log_info("Timed-out waiting for a checkpoint."); }
  return found;
}

generator<const std::string&> all_of(std::unique_ptr<checkpoint_follower> follower) {
  while (const auto found = next_of(*follower)) {
    const auto given_at = follower->time().now();
    const auto prefix = found->prefix();
    co_yield prefix;
    follower->sleep_until(detail::time_after(given_at, follower->options().min_interval_secs));
  }
}

generator<const checkpoint_reader&> all_opened(std::unique_ptr<checkpoint_follower> follower) {
  while (const auto found = next_of(*follower)) {
    const auto given_at = follower->time().now();
    co_yield *found;
    follower->sleep_until(detail::time_after(given_at, follower->options().min_interval_secs));
  }
}

}  // namespace

std::optional<std::int64_t> step_of_checkpoint(std::string_view prefix) noexcept {
  const auto dash = prefix.rfind('-');
  return dash == std::string_view::npos ? std::nullopt : detail::step_in_name(prefix, prefix.substr(0, dash), "");
}

std::optional<std::string> latest_checkpoint(const std::string& directory, std::shared_ptr<io::file_system> files) {
  auto newest = detail::find_newest_listed(*or_real(std::move(files)), directory);
  if (!newest) { return std::nullopt; }
  if (newest->exists) { return std::move(newest->prefix); }
  log_warning(newest->prefix + ": the state file names this checkpoint as the newest, but its index is missing");
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
  const auto found = follower.wait_for_next();
  return found ? std::optional(found->prefix()) : std::nullopt;
}

generator<const std::string&> checkpoints_iterator(std::string checkpoint_dir, checkpoints_iterator_options options) {
  return all_of(std::make_unique<checkpoint_follower>(std::move(checkpoint_dir), std::move(options)));
}

generator<const checkpoint_reader&> detail::open_checkpoints(const std::string& checkpoint_dir, checkpoints_iterator_options options) {
  return all_opened(std::make_unique<checkpoint_follower>(checkpoint_dir, std::move(options)));
}

namespace {

/// Returns the metric in a checkpoint. Empty if another program wrote the checkpoint.
std::optional<double> value_in(const checkpoint_reader& reader) {
  const auto* entry = reader.find(best_value_name);
  if (entry == nullptr || entry->dtype != dtype::float64 || !entry->shape.empty()) { return std::nullopt; }
  return reader.read(best_value_name).as<double>().front();
}

}  // namespace

std::optional<scored_checkpoint> best_checkpoint(const std::string& directory, std::string_view name,
                                                 std::shared_ptr<io::file_system> files) {
  auto reader = open_newest(io::join_path(directory, name), default_checkpoint_basename, std::move(files));
  while (reader) {
    try {
      if (const auto value = value_in(*reader)) { return scored_checkpoint{reader->prefix(), reader->step().value_or(0), *value}; }
      throw data_loss_error("this checkpoint has no metric; it was not saved by a best_checkpoint_hook", reader->prefix());
    } catch (const error& failure) { reader = reader->search()->next_after(*reader, failure); }
  }
  return std::nullopt;
}

}  // namespace stepwell
