// SPDX-License-Identifier: Apache-2.0
//
// Iteration over the checkpoints that another process saves to a directory; used by evaluators.
#pragma once

#include "stepwell/base/clock.hpp"
#include "stepwell/base/setting.hpp"
#include "stepwell/coro/generator.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

namespace stepwell {

namespace io {
class file_system;
}

/// Options for waiting for a checkpoint.
struct new_checkpoint_options {
  seconds_value seconds_to_sleep = 1;                      ///< Interval between two polls of the directory.
  std::optional<seconds_value> timeout = std::nullopt;     ///< Empty: no limit. Zero: one poll.
  std::stop_token stop_token = {};                         ///< Ends the wait at once, after one last poll.
  std::shared_ptr<stepwell::clock> clock = nullptr;        ///< Null: the clock of the machine.
  std::shared_ptr<io::file_system> file_system = nullptr;  ///< Null: the file system of the machine.
};

/// Blocks until the state file names a new newest checkpoint, and returns its prefix. The checkpoint must be complete and different
/// from `last_checkpoint`. The directory need not exist yet.
/// Returns nothing after the timeout. After a stop it returns the result of one last poll, so the last checkpoint of a saver that
/// was closed before the stop is found. A damaged checkpoint is skipped with a warning. A checkpoint that is deleted during the
/// poll (by the retention of its saver) is skipped silently.
/// @errors `permission_denied_error` and other failures of the file system. `invalid_argument_error` unless `seconds_to_sleep` is
///         above zero.
/// @cost   Reads every byte of the new checkpoint.
[[nodiscard]] std::optional<std::string> wait_for_new_checkpoint(const std::string& checkpoint_dir,
                                                                 std::optional<std::string> last_checkpoint = std::nullopt,
                                                                 new_checkpoint_options options = {});

/// Options of `checkpoints_iterator`.
struct checkpoints_iterator_options {
  /// Minimum time between two returned checkpoints. Of the checkpoints saved in between only the newest is returned.
  seconds_value min_interval_secs = 0;
  /// Options for waiting for each checkpoint.
  new_checkpoint_options wait = {};
  /// Callback after a timeout. It returns true to end the iteration, or false to wait for another timeout. Null: the first timeout
  /// ends the iteration.
  std::function<bool()> timeout_fn = nullptr;
  /// Whether to return every listed checkpoint, oldest first, instead of only the newest. Useful for finished runs, with a timeout
  /// of zero.
  bool all_listed = false;
  /// Token that ends the iteration at once, without the last poll that follows a stop.
  std::stop_token cancel_token = {};
};

/// Returns the newest complete checkpoint of a directory, then each newer one, like repeated calls of `wait_for_new_checkpoint`.
/// Ends after a timeout or after the last poll that follows a stop:
/// `for (const auto& prefix : checkpoints_iterator("run", {.wait = {.timeout = 600}})) {...}`.
/// Each checkpoint is returned once. A checkpoint that is written again under the same name (after a rollback) counts as a new one.
/// @lifetime A prefix is valid until the next one is requested. Its files exist until the saver deletes them, possibly soon.
/// @errors   Like `wait_for_new_checkpoint`, thrown during the iteration, which then is at its end.
[[nodiscard]] generator<const std::string&> checkpoints_iterator(std::string checkpoint_dir, checkpoints_iterator_options options = {});

}  // namespace stepwell
