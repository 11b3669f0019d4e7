// SPDX-License-Identifier: Apache-2.0
//
// Functions that find the checkpoint to resume from and the best one, list and delete checkpoints, and wait for checkpoints that another
// process saves. A checkpoint is named by its prefix, for example "run/model.ckpt-500"; its files are the index "PREFIX.index" and data files.
// All functions that read may be called while another process saves and deletes checkpoints in the directory. If a checkpoint was deleted
// after it was found, they read the directory again. Only a checkpoint that is still listed or still has its index can be damaged or missing.
#pragma once

#include "stepwell/base/cadence.hpp"
#include "stepwell/base/clock.hpp"
#include "stepwell/checkpoint/checkpoint_reader.hpp"
#include "stepwell/coro/generator.hpp"
#include "stepwell/io/file_system.hpp"

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

/// Name of the state file in a directory of checkpoints. The state file lists the checkpoints and names the newest one.
inline constexpr std::string_view state_file_name = "checkpoint";
/// Default basename of checkpoints. The basename is the part of the name before the step: "model.ckpt" in "model.ckpt-500".
inline constexpr std::string_view default_checkpoint_basename = "model.ckpt";

/// Returns the number N if `prefix` is "anything-N". Otherwise returns nothing.
[[nodiscard]] std::optional<std::int64_t> step_of_checkpoint(std::string_view prefix) noexcept;

/// Returns the prefix of the newest checkpoint according to the state file, if the index of this checkpoint exists. Reads neither the index
/// nor the data. Returns nothing if there is no state file. If the state file cannot be parsed or names a checkpoint without an index, logs
/// a warning and returns nothing.
/// @errors `permission_denied_error` and other failures of the file system.
/// @see    contract STATE-5
[[nodiscard]] std::optional<std::string> latest_checkpoint(const std::string& directory, std::shared_ptr<io::file_system> files = nullptr);

/// Returns the prefixes `basename`-N of all checkpoints in a directory that have an index, sorted by N. Ignores the state file.
[[nodiscard]] std::vector<std::string> list_checkpoints(const std::string& directory,
                                                        std::string_view basename = default_checkpoint_basename,
                                                        std::shared_ptr<io::file_system> files = nullptr);

/// Returns the newest complete checkpoint, after a check of all its checksums. Returns nothing if the directory does not exist or contains
/// no checkpoint. Candidates are tried in three groups, each from newest to oldest. The first group consists of unlisted checkpoints that
/// are newer than all checkpoints in the state file: a process that is killed between a save and the update of the state file leaves them.
/// The second group consists of the checkpoints in the state file. The third group consists of the other unlisted checkpoints. Unlisted
/// checkpoints are ordered by their tensor `stepwell/save_number`. Checkpoints without this tensor (written by TensorFlow) are ordered by
/// step. Damaged checkpoints are skipped. For each of the first 20, a warning describes the damage.
/// @errors `data_loss_error` if there are candidates and all of them are damaged or missing, so that training never restarts silently from
///   step zero. The message names at most 20 candidates. `resource_exhausted_error` if no candidate could be opened, and there was not
///   enough memory for at least one. `permission_denied_error` and other failures of the file system if the state file or an index cannot
///   be read.
/// @cost   Reads every byte of each candidate tried, and the index of each unlisted checkpoint.
[[nodiscard]] std::optional<checkpoint_reader> latest_whole_checkpoint(const std::string& directory,
                                                                       std::string_view basename = default_checkpoint_basename,
                                                                       std::shared_ptr<io::file_system> files = nullptr);

/// Like `latest_whole_checkpoint`, but checks only the index of the checkpoint and the sizes of its files. The restore then verifies the
/// checksums while it reads (unless `verify_first` is set), so each byte is read only once. If this restore fails, `search()->next_after`
/// of the reader returns the next older checkpoint. If the restore succeeds, the caller must call `search()->accept`. `accept` calls
/// `on_accept` unless it is null. Sessions use this function.
/// @errors Like `latest_whole_checkpoint`.
/// @cost   Reads the index of each candidate tried.
[[nodiscard]] std::optional<checkpoint_reader> open_newest(const std::string& directory,
                                                           std::string_view basename = default_checkpoint_basename,
                                                           std::shared_ptr<io::file_system> files = nullptr,
                                                           std::function<void(const checkpoint_reader&)> on_accept = nullptr);

/// Returns true if the index of the checkpoint `prefix` ("run/model.ckpt-500") exists. Does not open the index.
/// @errors Failures of the file system.
/// @see    contract STATE-6
[[nodiscard]] bool checkpoint_exists(const std::string& prefix, std::shared_ptr<io::file_system> files = nullptr);

/// Returns the times at which the checkpoints were completed, in the order of `prefixes`: the modification times of their indexes. Skips
/// checkpoints without an index, so the result may be shorter than `prefixes`.
/// @errors Failures of the file system.
[[nodiscard]] std::vector<clock::wall_time> get_checkpoint_mtimes(std::span<const std::string> prefixes,
                                                                  std::shared_ptr<io::file_system> files = nullptr);

/// Deletes a checkpoint: first its index, so that there is never half a checkpoint, then its data files and TensorFlow's graph file
/// (".meta"). If there is no index, deletes only the other files. Does not change the state file.
/// @pre    No saver has locked the directory. To let a saver delete checkpoints, use its options.
/// @errors Failures of the file system when the index is deleted or the directory is listed. A failure to delete another file is only
///   logged, because without the index this file is not part of a checkpoint.
void remove_checkpoint(const std::string& prefix, std::shared_ptr<io::file_system> files = nullptr);

/// Options for waiting for a checkpoint.
struct new_checkpoint_options {
  seconds_value seconds_to_sleep = 1;                      ///< Interval between two polls of the directory.
  std::optional<seconds_value> timeout = std::nullopt;     ///< If empty, there is no limit. If zero, there is one poll.
  std::stop_token stop_token = {};                         ///< A stop request ends the wait at once, after one last poll.
  std::shared_ptr<stepwell::clock> clock = nullptr;        ///< If null, the clock of the machine is used.
  std::shared_ptr<io::file_system> file_system = nullptr;  ///< If null, the file system of the machine is used.
};

/// Blocks until the state file names a checkpoint other than `last_checkpoint` as the newest, and this checkpoint is complete. Returns the
/// prefix of this checkpoint. The directory need not exist yet. Returns nothing after the timeout. After a stop request, returns the result
/// of one last poll. If a saver was closed before the stop, this poll finds the last checkpoint of the saver. A damaged checkpoint is
/// skipped with a warning. A checkpoint that is deleted during the poll (by the retention of its saver) is skipped silently.
/// @errors `permission_denied_error` and other failures of the file system. `invalid_argument_error` if `seconds_to_sleep` is not above
///   zero or `timeout` is negative.
/// @cost   Reads every byte of the new checkpoint.
[[nodiscard]] std::optional<std::string> wait_for_new_checkpoint(const std::string& checkpoint_dir,
                                                                 std::optional<std::string> last_checkpoint = std::nullopt,
                                                                 new_checkpoint_options options = {});

/// Options of `checkpoints_iterator`.
struct checkpoints_iterator_options {
  /// Minimum time between two returned checkpoints. If several checkpoints are saved in this time, only the newest of them is returned,
  /// unless `all_listed` is true.
  seconds_value min_interval_secs = 0;
  new_checkpoint_options wait = {};  ///< Options for waiting for each checkpoint.
  /// Callback after a timeout. It returns true to end the iteration, or false to wait again, with the same timeout. If null, the first
  /// timeout ends the iteration.
  std::function<bool()> timeout_fn = nullptr;
  /// If true, every listed checkpoint is returned, oldest first, and not only the newest. Useful for finished runs, with a timeout of zero.
  bool all_listed = false;
  std::stop_token cancel_token = {};  ///< A stop request for this token ends the iteration at once, without a last poll.
};

/// Returns the newest complete checkpoint of a directory, then each newer one, like repeated calls of `wait_for_new_checkpoint`:
/// `for (const auto& prefix : checkpoints_iterator("run", {.wait = {.timeout = 600}})) {...}`.
/// Ends after a timeout (see `timeout_fn`), after the last poll that follows a stop request for `wait.stop_token`, or at once after a stop
/// request for `cancel_token`. Each checkpoint is returned once. A checkpoint that is written again under the same name (after a rollback)
/// counts as a new checkpoint.
/// @lifetime The returned prefix is valid until the next one is requested. The files of the checkpoint exist until the saver deletes them,
///   possibly soon.
/// @errors Like `wait_for_new_checkpoint`. This function throws the errors about options. The iteration throws all other errors, and then
///   ends.
[[nodiscard]] generator<const std::string&> checkpoints_iterator(std::string checkpoint_dir, checkpoints_iterator_options options = {});

namespace detail {
/// Like `checkpoints_iterator`, but returns each checkpoint opened and verified, so that its deletion does not disturb the caller.
[[nodiscard]] generator<const checkpoint_reader&> open_checkpoints(const std::string& checkpoint_dir, checkpoints_iterator_options options);
}  // namespace detail

/// Selects whether lower or higher values of a metric are better.
enum class metric_mode { minimize, maximize };

/// Name of the tensor that contains the metric, a double. Each checkpoint of a `best_checkpoint_hook` has this tensor.
inline constexpr std::string_view best_value_name = "stepwell/best/value";
/// Default name of the subdirectory, in the directory of the run, that contains the best checkpoints.
inline constexpr std::string_view default_best_name = "best";

/// A checkpoint, and the value of the metric in the saved state.
struct scored_checkpoint {
  std::string prefix;  ///< With the directory: "run/best/model.ckpt-500".
  std::int64_t step = 0;
  double value = 0;
};

/// Returns the best checkpoint of the run in `directory`, or `nullopt` if there is none. It is the newest complete checkpoint in
/// `directory/name`, because a `best_checkpoint_hook` saves a state only if it is better than all states saved before. Reads the
/// metric from the checkpoint. Like `open_newest`, checks the index and the file sizes of the checkpoint. Verifies the checksum of the
/// metric, but not those of the other tensors.
/// Example: `if (auto best = best_checkpoint("run")) { evaluate_once(model, best->prefix, test_set); }`
/// @errors `data_loss_error` if `directory/name` has checkpoints, and all of them are damaged or have no metric. Failures of the file
///         system.
[[nodiscard]] std::optional<scored_checkpoint> best_checkpoint(const std::string& directory, std::string_view name = default_best_name,
                                                               std::shared_ptr<io::file_system> files = nullptr);

}  // namespace stepwell
