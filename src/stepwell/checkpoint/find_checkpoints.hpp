// SPDX-License-Identifier: Apache-2.0
//
// Functions that find the checkpoint to resume from, list and delete checkpoints, and wait for checkpoints that another process saves.
#pragma once

#include "stepwell/base/cadence.hpp"
#include "stepwell/base/clock.hpp"
#include "stepwell/checkpoint/checkpoint_reader.hpp"
#include "stepwell/coro/generator.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace stepwell {

/// Name of the state file in a directory of checkpoints.
inline constexpr std::string_view state_file_name = "checkpoint";
/// Default basename of checkpoints: "model.ckpt-500".
inline constexpr std::string_view default_checkpoint_basename = "model.ckpt";

/// Returns N of "anything-N", or nothing if `prefix` does not end in this way.
[[nodiscard]] std::optional<std::int64_t> step_of_checkpoint(std::string_view prefix) noexcept;

/// Returns the newest checkpoint according to the state file, if its index exists. Checks nothing else. Returns nothing without a
/// state file. If the state file cannot be parsed or names a checkpoint that does not exist, logs a warning and returns nothing.
/// @errors `permission_denied_error` and other failures of the file system.
/// @see    contract STATE-5
[[nodiscard]] std::optional<std::string> latest_checkpoint(const std::string& directory, std::shared_ptr<io::file_system> files = nullptr);

/// Returns the prefixes of all indexes `basename`-N in a directory, sorted by N. Ignores the state file.
[[nodiscard]] std::vector<std::string> list_checkpoints(const std::string& directory,
                                                        std::string_view basename = default_checkpoint_basename,
                                                        std::shared_ptr<io::file_system> files = nullptr);

/// Returns the newest complete checkpoint, after a check of all its checksums. Returns nothing if the directory does not exist or contains
/// no checkpoint. Candidates are tried from newest to oldest: first unlisted checkpoints that are newer than the newest listed one (their
/// process was killed before it wrote the state file), then listed ones, then the other unlisted ones. Unlisted checkpoints are ordered by
/// their tensor `stepwell/save_number`. Checkpoints without this tensor (written by TensorFlow) are ordered by step. Each damaged
/// checkpoint is skipped with a warning that describes the damage.
/// @errors `data_loss_error` naming the candidates (at most 20) if all of them are damaged or missing; training never restarts
///         silently from step zero. `resource_exhausted_error` if they could not be read because memory was short.
///         `permission_denied_error` and other failures of the file system if the state file or an index cannot be read.
/// @cost   Reads every byte of each candidate tried, and the index of each unlisted checkpoint.
[[nodiscard]] std::optional<checkpoint_reader> find_newest_whole(const std::string& directory,
                                                                 std::string_view basename = default_checkpoint_basename,
                                                                 std::shared_ptr<io::file_system> files = nullptr);

/// Like `find_newest_whole`, but checks only the index of the checkpoint and the sizes of its files, so that a restore without
/// `verify_first` can read the checkpoint once. If this restore fails, `search()->next_after` of the reader returns the next older
/// checkpoint. A session restores in this way. `on_accept`, if given, is called by `search()->accept`.
/// @errors Like `find_newest_whole`.
/// @cost   Reads the index of each candidate tried.
[[nodiscard]] std::optional<checkpoint_reader> open_newest(const std::string& directory,
                                                           std::string_view basename = default_checkpoint_basename,
                                                           std::shared_ptr<io::file_system> files = nullptr,
                                                           std::function<void(const checkpoint_reader&)> on_accept = nullptr);

/// Returns true if the index of the checkpoint `prefix` ("run/model.ckpt-500") exists. Does not open it.
/// @errors Failures of the file system.
/// @see    contract STATE-6
[[nodiscard]] bool checkpoint_exists(const std::string& prefix, std::shared_ptr<io::file_system> files = nullptr);

/// Returns the times at which the checkpoints were completed, in the order of `prefixes`. Skips checkpoints that do not exist, so
/// the result may be shorter.
/// @errors Failures of the file system.
[[nodiscard]] std::vector<clock::wall_time> get_checkpoint_mtimes(std::span<const std::string> prefixes,
                                                                  std::shared_ptr<io::file_system> files = nullptr);

/// Deletes a checkpoint: first its index, so that there is never half a checkpoint, then its data and TensorFlow's graph file
/// (".meta"). Does nothing if the checkpoint does not exist. Does not change the state file.
/// @pre    No saver holds the directory. The options of a saver decide which checkpoints it keeps.
/// @errors Failures of the file system when the index is deleted. Other files that cannot be deleted are logged; they are not part
///         of any checkpoint.
void remove_checkpoint(const std::string& prefix, std::shared_ptr<io::file_system> files = nullptr);

/// Options for waiting for a checkpoint.
struct new_checkpoint_options {
  seconds_value seconds_to_sleep = 1;                      ///< Interval between two polls of the directory.
  std::optional<seconds_value> timeout = std::nullopt;     ///< If empty, there is no limit. If zero, there is one poll.
  std::stop_token stop_token = {};                         ///< Ends the wait at once, after one last poll.
  std::shared_ptr<stepwell::clock> clock = nullptr;        ///< If null, the clock of the machine is used.
  std::shared_ptr<io::file_system> file_system = nullptr;  ///< If null, the file system of the machine is used.
};

/// Blocks until the state file names a new newest checkpoint, and returns its prefix. The checkpoint must be complete and different from
/// `last_checkpoint`. The directory need not exist yet. Returns nothing after the timeout. After a stop request, returns the result of one
/// last poll: if a saver was closed before the stop, its last checkpoint is found. A damaged checkpoint is skipped with a warning. A
/// checkpoint that is deleted during the poll (by the retention of its saver) is skipped silently.
/// @errors `permission_denied_error` and other failures of the file system. `invalid_argument_error` unless `seconds_to_sleep` is
///         above zero.
/// @cost   Reads every byte of the new checkpoint.
[[nodiscard]] std::optional<std::string> wait_for_new_checkpoint(const std::string& checkpoint_dir,
                                                                 std::optional<std::string> last_checkpoint = std::nullopt,
                                                                 new_checkpoint_options options = {});

/// Options of `checkpoints_iterator`.
struct checkpoints_iterator_options {
  /// Minimum time between two returned checkpoints. If several checkpoints are saved in this time, only the newest is returned.
  seconds_value min_interval_secs = 0;
  new_checkpoint_options wait = {};  ///< Options for waiting for each checkpoint.
  /// Callback after a timeout. It returns true to end the iteration, or false to wait for another timeout. If null, the first timeout ends
  /// the iteration.
  std::function<bool()> timeout_fn = nullptr;
  /// Whether to return every listed checkpoint, oldest first, instead of only the newest. Useful for finished runs, with a timeout of zero.
  bool all_listed = false;
  std::stop_token cancel_token = {};  ///< Ends the iteration at once. In contrast to a stop, no last poll follows.
};

/// Returns the newest complete checkpoint of a directory, then each newer one, like repeated calls of `wait_for_new_checkpoint`.
/// Ends after a timeout or after the last poll that follows a stop:
/// `for (const auto& prefix : checkpoints_iterator("run", {.wait = {.timeout = 600}})) {...}`.
/// Each checkpoint is returned once. A checkpoint that is written again under the same name (after a rollback) counts as a new one.
/// @lifetime A prefix is valid until the next one is requested. Its files exist until the saver deletes them, possibly soon.
/// @errors   Like `wait_for_new_checkpoint`, thrown during the iteration, which then is at its end.
[[nodiscard]] generator<const std::string&> checkpoints_iterator(std::string checkpoint_dir, checkpoints_iterator_options options = {});

}  // namespace stepwell
