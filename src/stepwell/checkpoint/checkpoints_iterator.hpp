// SPDX-License-Identifier: Apache-2.0
//
// Follows a directory that somebody else saves to: for evaluators.
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

/// How to wait for a checkpoint.
struct new_checkpoint_options {
  seconds_value seconds_to_sleep = 1;                      ///< Between two looks at the directory.
  std::optional<seconds_value> timeout = std::nullopt;     ///< Not said: as long as it takes. Zero: one look.
  std::stop_token stop_token = {};                         ///< Ends the wait at once, after one last look.
  std::shared_ptr<stepwell::clock> clock = nullptr;        ///< Null: the machine's.
  std::shared_ptr<io::file_system> file_system = nullptr;  ///< Null: the machine's.
};

/// The prefix of the checkpoint that the state file calls newest, once it is whole and another than `last_checkpoint`.
/// Nothing after the timeout; after a stop, what one last look finds: a saver that was closed before the stop has its last
/// checkpoint found. One that is damaged is passed over with a warning; one that is deleted while it is
/// looked at (by the retention of its saver) silently. The directory need not exist yet.
/// @errors `permission_denied_error`, and other failures of the file system.
/// @cost   Reads every byte of the new one.
[[nodiscard]] std::optional<std::string> wait_for_new_checkpoint(const std::string& checkpoint_dir,
                                                                 std::optional<std::string> last_checkpoint = std::nullopt,
                                                                 new_checkpoint_options options = {});

struct checkpoints_iterator_options {
  /// At least so long from one to the next; what is saved meanwhile is passed over for the newest.
  seconds_value min_interval_secs = 0;
  /// How to wait for each.
  new_checkpoint_options wait = {};
  /// Asked after a timeout: true if no more will come, false to wait as long again. Null: a timeout is the end.
  std::function<bool()> timeout_fn = nullptr;
  /// Gives every listed checkpoint, oldest first, not only the newest: for runs that are finished, say, with a timeout of zero.
  bool all_listed = false;
  /// Ends the iteration at once, without the last look that follows a stop.
  std::stop_token cancel_token = {};
};

/// The newest whole checkpoint of a directory, then each newer one, as `wait_for_new_checkpoint` finds them, until a timeout
/// or the last look after a stop: `for (const auto& prefix : checkpoints_iterator("run", {.wait = {.timeout = 600}})) {...}`.
/// None comes twice; one that is written again under the name of another (after a rollback) is another one.
/// @lifetime A prefix is good until the next one. Its files stay until the saver deletes them, maybe soon.
/// @errors   As `wait_for_new_checkpoint`, out of the iteration; it is then at its end.
[[nodiscard]] generator<const std::string&> checkpoints_iterator(std::string checkpoint_dir, checkpoints_iterator_options options = {});

}  // namespace stepwell
