// SPDX-License-Identifier: Apache-2.0
//
// How a saver saves: names, what to keep, what to do when the disk is slow, and when it fails.
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

/// What to do with a save that comes while as many as allowed are still being written.
enum class when_busy {
  wait,      ///< The step waits for the disk; every save happens.
  skip,      ///< This save does not happen.
  coalesce,  ///< It takes the place of the newest one that waits and is not yet being written.
};

/// What to do when a save has failed.
class on_save_error {
public:
  /// Deliver the failure at the next step boundary.
  [[nodiscard]] static on_save_error stop() { return on_save_error(false, 0, {}); }
  /// Try again up to `attempts` times, waiting `first`, then twice as long each time; then as `stop`.
  /// A full disk is never tried again.
  [[nodiscard]] static on_save_error retry(int attempts, clock::duration first = std::chrono::seconds(1)) {
    return on_save_error(false, attempts, first);
  }
  /// Log it and go on; the next save is as good a chance.
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

/// Which of two values of a metric is the better one.
enum class better { higher, lower };

/// Keeps, besides the newest, the `count` checkpoints whose metric is best, as reported by `saver::report_metric`. A saver that
/// has one of the two without the other logs a warning when it closes.
struct keep_best {
  std::string metric = "loss";
  std::size_t count = 1;
  better direction = better::lower;
};

struct saver_options;
/// @errors `invalid_argument_error` naming what makes no sense.
void check_saver_options(const saver_options& options);

/// Everything has a default; an empty pointer means the process-wide one.
struct saver_options {
  std::string basename = "model.ckpt";
  /// "model.ckpt-00000500" instead of "model.ckpt-500": names that sort as their steps do.
  bool pad_step_number = false;
  /// How many of the newest whole ones to keep; 0 or none: all.
  setting<int> max_to_keep = 5;
  /// One of those that fall out of the newest stays for good once so many hours have passed since the last that did.
  setting<double> keep_every_n_hours = none;
  std::optional<stepwell::keep_best> keep_best = std::nullopt;
  /// Prefixes never to delete, e.g. "model.ckpt-500".
  std::vector<std::string> pinned = {};
  /// Snapshots held at most, the one being written included.
  std::size_t max_staged = 2;
  stepwell::when_busy when_busy = stepwell::when_busy::wait;
  on_save_error on_error = on_save_error::stop();
  int shards = 1;
  /// Off: nothing is synced, a save is fast and a power cut may lose it (a killed process does not).
  bool sync = true;
  std::shared_ptr<io::file_system> file_system = nullptr;
  std::shared_ptr<io::pool> pool = nullptr;
  std::shared_ptr<stepwell::clock> clock = nullptr;
};

}  // namespace stepwell
