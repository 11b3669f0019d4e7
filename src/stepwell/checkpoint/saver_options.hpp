// SPDX-License-Identifier: Apache-2.0
//
// Options of a saver: names, retention, and the policies for a slow disk and for failures.
#pragma once

#include "stepwell/base/clock.hpp"
#include "stepwell/base/setting.hpp"

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace stepwell {

namespace io {
class file_system;
class pool;
}  // namespace io

/// Policy for a save while the maximum number of snapshots is held.
enum class when_busy {
  wait,      ///< Block the step until the disk has caught up; every save happens.
  skip,      ///< Skip this save.
  coalesce,  ///< Replace the newest queued snapshot that is not yet being written.
};

/// Policy for a failed save.
class on_save_error {
public:
  /// Delivers the failure at the next step boundary.
  [[nodiscard]] static on_save_error stop() { return on_save_error(false, 0, {}); }
  /// Retries up to `attempts` times, then behaves like `stop`. The delay before the first retry is `first`; it doubles with each
  /// retry. A failure that cannot be transient, such as a full disk, is not retried.
  [[nodiscard]] static on_save_error retry(int attempts, clock::duration first = std::chrono::seconds(1)) {
    return on_save_error(false, attempts, first);
  }
  /// Logs the failure and continues. The next save is tried as usual.
  [[nodiscard]] static on_save_error warn() { return on_save_error(true, 0, {}); }

  [[nodiscard]] bool only_warns() const noexcept { return only_warns_; }
  [[nodiscard]] int retries() const noexcept { return retries_; }
  [[nodiscard]] clock::duration first_wait() const noexcept { return first_wait_; }

private:
  on_save_error(bool only_warns, int retries, clock::duration first_wait)
      : only_warns_(only_warns), retries_(retries), first_wait_(first_wait) {}

  bool only_warns_;
  int retries_;
  clock::duration first_wait_;
};

/// Direction of a metric: whether higher or lower values are better.
enum class better { higher, lower };

/// Retention of the best checkpoints. Besides the newest checkpoints, the `count` checkpoints with the best metric are kept. The
/// metric is reported by `saver::report_metric`. A saver logs a warning at close if this option is set and no metric was reported,
/// or if metrics were reported and this option is not set.
struct keep_best {
  std::string metric = "loss";
  std::size_t count = 1;
  better direction = better::lower;
};

struct saver_options;
/// Checks the options.
/// @errors `invalid_argument_error` naming the invalid option.
void check_saver_options(const saver_options& options);

/// Options of a saver. Every option has a default. A null pointer selects the process-wide object.
struct saver_options {
  std::string basename = "model.ckpt";
  /// Whether to write "model.ckpt-00000500" instead of "model.ckpt-500", so that names sort in the order of steps.
  bool pad_step_number = false;
  /// Number of newest complete checkpoints to keep. 0 or `none`: all.
  setting<int> max_to_keep = 5;
  /// Interval in hours for permanent checkpoints. A checkpoint that would be deleted is kept permanently if at least this many
  /// hours have passed since the last one that was kept in this way.
  setting<double> keep_every_n_hours = none;
  std::optional<stepwell::keep_best> keep_best = std::nullopt;
  /// Prefixes of checkpoints that are never deleted, for example "model.ckpt-500".
  std::vector<std::string> pinned = {};
  /// Maximum number of snapshots held, including the one being written.
  std::size_t max_staged = 2;
  stepwell::when_busy when_busy = stepwell::when_busy::wait;
  on_save_error on_error = on_save_error::stop();
  int shards = 1;
  /// Whether to sync files to disk. If false, saves are faster, but a power failure may lose them. A killed process does not lose them.
  bool sync = true;
  std::shared_ptr<io::file_system> file_system = nullptr;
  std::shared_ptr<io::pool> pool = nullptr;
  std::shared_ptr<stepwell::clock> clock = nullptr;
};

}  // namespace stepwell
