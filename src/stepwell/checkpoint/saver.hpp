// SPDX-License-Identifier: Apache-2.0
//
// Makes snapshots durable in the background, keeps the directory's list of checkpoints, deletes what is past keeping.
#pragma once

#include "stepwell/base/clock.hpp"
#include "stepwell/checkpoint/checkpoint_reader.hpp"
#include "stepwell/checkpoint/save_backlog.hpp"
#include "stepwell/checkpoint/saver_options.hpp"
#include "stepwell/checkpoint/snapshot.hpp"

#include <chrono>
#include <concepts>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace stepwell {

/// One checkpoint that is durable, listed and whole.
struct saved_checkpoint {
  std::string prefix;  ///< With the directory: "run/model.ckpt-500".
  std::int64_t step = 0;
  std::uint64_t size_bytes = 0;             ///< Of the variables.
  std::chrono::duration<double> seconds{};  ///< From the start of writing to durable.
};

/// What became of a snapshot that was given to a saver.
enum class save_outcome { queued, skipped, coalesced };

/// Saves snapshots into one directory, which it holds locked for as long as it lives. A checkpoint becomes visible only
/// when whole: its data synced, then its index, then the state file; a kill at any instant leaves the ones before as they
/// were. Saving the same step again does not touch the older one until the new one is whole.
///
/// @threads All functions may be called from any thread, but for moving and destroying.
class saver {
public:
  using clock_type = stepwell::clock;

  /// Creates the directory, locks it, sweeps with a warning what killed saves left behind, and reads the state file.
  /// @errors `failed_precondition_error` naming who holds the directory; failures of the file system;
  ///         `invalid_argument_error` for options that make no sense.
  explicit saver(std::string directory, saver_options options = {});
  saver(saver&&) noexcept;
  saver& operator=(saver&&) = delete;
  /// Waits for everything under way (a try again that is due later happens at once); a failure nobody was told of is
  /// logged. `drain` first to have it thrown. After a `drain` that ran into its deadline it does not wait again: what is
  /// under way goes on alone as long as the process lives, the directory stays locked until then, and that is logged.
  /// A later `drain` that succeeds makes good for it.
  /// @pre Not on a thread of the saver's pool.
  ~saver();

  /// The buffer to capture the next snapshot into, under the `when_busy` policy: `wait` waits for one, `skip` gives none
  /// when all are taken, `coalesce` drops the waiting snapshot and gives its buffer (waits if none waits).
  /// `if (auto buffer = saver.acquire(pool)) { saver.save(snapshot::capture(std::move(*buffer), variables, step)); }`
  [[nodiscard]] std::optional<snapshot_pool::buffer> acquire(snapshot_pool& pool);
  /// The same without waiting: none where `acquire` would wait (then see `snapshot_pool::when_available`) or skip.
  [[nodiscard]] std::optional<snapshot_pool::buffer> try_acquire(snapshot_pool& pool);

  /// Takes a snapshot and returns; a task on the pool writes it. Saves happen in the order given.
  /// `before_commit` is called on the pool's thread when the data is durable, before the index is written: the checkpoint
  /// does not exist before it returns. It is called again at each retry. If it throws, the save fails with that error.
  /// @errors The failure of an earlier save that was not delivered yet (policy `stop`); the snapshot is then dropped.
  save_outcome save(snapshot taken, std::function<void()> before_commit = nullptr);
  /// Takes a snapshot and returns when it is durable; older ones past keeping may go a moment later (see `drain`).
  /// Never skips. @errors Why it could not be saved, after retries.
  /// @pre Not called on a thread of the saver's pool.
  saved_checkpoint save_and_wait(snapshot taken);
  template<class T>
    requires(!std::same_as<std::remove_cvref_t<T>, snapshot>)
  save_outcome save(T&&) {
    static_assert(std::same_as<T, snapshot>, "stepwell: a saver takes a snapshot; a live view could change while it is written");
    return save_outcome::skipped;
  }

  /// Called after each save, in order, on the pool's thread; must not wait for the saver. What they throw is logged.
  /// Replaces the one before; when it returns, the old one is not running, unless it is itself the caller.
  void on_saved(std::function<void(const saved_checkpoint&)> callback);
  /// Called for each save given up for good, under every policy.
  void on_failure(std::function<void(std::exception_ptr)> callback);

  /// Whether a failure waits to be delivered. @cost One relaxed load: made for every step boundary.
  [[nodiscard]] bool has_failure() const noexcept;
  /// Throws the first undelivered failure, once, if there is one. Under `warn` there never is.
  void throw_if_failed();
  /// Returns true if a checkpoint or a reported metric is still being written, or waits to be.
  [[nodiscard]] bool busy() const;
  /// Returns how much of checkpoints that is.
  [[nodiscard]] save_backlog backlog() const;
  /// Waits until nothing is, what is past keeping deleted. @errors The first undelivered failure.
  void drain();
  /// The same, but not beyond `deadline`. @errors `deadline_exceeded_error` when still busy then.
  void drain(clock::time_point deadline);
  /// Calls `wake` once when nothing is under way any more: at once, or on the pool's thread. The awaited twin of `drain`.
  void when_idle(std::function<void()> wake);

  /// Waits for everything under way and lets go of the directory; what was learnt stays readable. After a `drain` that ran
  /// into its deadline it waits no more: what is under way goes on alone, and keeps the directory until it is done.
  /// A failure nobody was told of is logged. From then on saving is an error. The second call does nothing.
  void close() noexcept;

  /// Like `close`, but waits for nothing: what is under way is finished on the pool, a retry that waits is made at once, and
  /// then the directory is released.
  void detach() noexcept;
  /// Keeps `hold` until the directory is released by `close`, by `detach`, or by the end of this saver, and then destroys it.
  void hold_until_released(std::shared_ptr<void> hold);

  /// The newest whole checkpoint of the directory (see `find_newest_whole`), which will then not be deleted.
  [[nodiscard]] std::optional<checkpoint_reader> restore_newest();
  /// The newest one this saver wrote since it lives.
  [[nodiscard]] std::optional<saved_checkpoint> latest() const;
  /// Prefixes (with the directory) that are listed, oldest first.
  [[nodiscard]] std::vector<std::string> checkpoints() const;

  /// Never delete this one; a prefix with or without the directory.
  void pin(const std::string& prefix);
  /// Reports the `keep_best` metric of a step, saved already or later; not-a-number is never best. A task on the pool writes it to
  /// a small file: durable when `drain` returns, and deletes nothing before. @errors `failed_precondition_error` after `close`.
  void report_metric(std::int64_t step, double value);

  [[nodiscard]] const std::string& directory() const noexcept;
  [[nodiscard]] const saver_options& options() const noexcept;

private:
  class core;
  std::shared_ptr<core> core_;
};

}  // namespace stepwell
