// SPDX-License-Identifier: Apache-2.0
//
// A saver writes snapshots in the background, maintains the list of checkpoints of its directory and deletes expired checkpoints.
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

/// A checkpoint that is complete, durable and listed in the state file.
struct saved_checkpoint {
  std::string prefix;  ///< With the directory: "run/model.ckpt-500".
  std::int64_t step = 0;
  std::uint64_t size_bytes = 0;             ///< Size of the variables.
  std::chrono::duration<double> seconds{};  ///< Time from the start of writing until durable.
};

/// Outcome of passing a snapshot to a saver.
enum class save_outcome { queued, skipped, coalesced };

/// Saves snapshots to one directory. The saver holds a lock on the directory until it is closed or destroyed. A checkpoint becomes
/// visible only when it is complete: the saver syncs the data, then the index, then the state file. A kill at any instant leaves
/// the previous checkpoints intact. If the same step is saved again, the older checkpoint stays unchanged until the new one is
/// complete.
///
/// @threads All functions except the move constructor and the destructor may be called from any thread.
class saver {
public:
  using clock_type = stepwell::clock;

  /// Creates the directory, locks it, removes the files of killed saves with a warning, and reads the state file.
  /// @errors `failed_precondition_error` naming the holder of the directory. `invalid_argument_error` for invalid options. Failures
  ///         of the file system.
  explicit saver(std::string directory, saver_options options = {});
  saver(saver&&) noexcept;
  saver& operator=(saver&&) = delete;
  /// Blocks until all saves are finished. A scheduled retry is made at once. Logs a failure that was not delivered; call `drain`
  /// before to get it as an exception.
  /// After a `drain` that reached its deadline, the destructor does not block again: the saves continue in the background as long
  /// as the process lives, the directory stays locked until they end, and this is logged. A later `drain` that succeeds cancels
  /// this.
  /// @pre Not called on a thread of the saver's pool.
  ~saver();

  /// Returns a buffer for the next snapshot. If all buffers of the pool are taken, the `when_busy` policy decides: `wait` blocks
  /// until one is free, `skip` returns none, `coalesce` drops the newest queued snapshot and returns its buffer, or blocks if no
  /// snapshot is queued.
  /// `if (auto buffer = saver.acquire(pool)) { saver.save(snapshot::capture(std::move(*buffer), variables, step)); }`
  [[nodiscard]] std::optional<snapshot_pool::buffer> acquire(snapshot_pool& pool);
  /// Like `acquire`, but returns none where `acquire` would block (use `snapshot_pool::when_available` then) or skip.
  [[nodiscard]] std::optional<snapshot_pool::buffer> try_acquire(snapshot_pool& pool);

  /// Queues a snapshot and returns; a task on the pool writes it. Saves are done in the order of the calls. If as many snapshots as
  /// allowed are held, the `when_busy` policy applies.
  /// `before_commit` is called on the pool's thread when the data is durable and the index is not yet written. The checkpoint does
  /// not exist before `before_commit` returns. It is called again at each retry. If it throws, the save fails with that exception.
  /// @errors The undelivered failure of an earlier save (policies `stop` and `retry`); the snapshot is then dropped.
  ///         `failed_precondition_error` after `close`.
  save_outcome save(snapshot taken, std::function<void()> before_commit = nullptr);
  /// Saves a snapshot and blocks until it is durable. Expired checkpoints may be deleted a moment later (see `drain`). Never skips
  /// a snapshot.
  /// @errors The failure of this save, after all retries. `failed_precondition_error` after `close`.
  /// @pre    Not called on a thread of the saver's pool.
  saved_checkpoint save_and_wait(snapshot taken);
  template<class T>
    requires(!std::same_as<std::remove_cvref_t<T>, snapshot>)
  save_outcome save(T&&) {
    static_assert(std::same_as<T, snapshot>, "stepwell: a saver takes a snapshot; a live view could change while it is written");
    return save_outcome::skipped;
  }

  /// Registers a callback for successful saves. It is called after each save, in order, on the pool's thread, and must not wait for
  /// the saver. Its exceptions are logged. A new callback replaces the previous one. When this function returns, the previous
  /// callback is not running, unless it made this call itself.
  void on_saved(std::function<void(const saved_checkpoint&)> callback);
  /// Registers a callback for failed saves. It is called for each save that is given up after all retries, under every policy.
  void on_failure(std::function<void(std::exception_ptr)> callback);

  /// Returns true if a failure has not been delivered yet.
  /// @cost One relaxed load, so it can be called at every step boundary.
  [[nodiscard]] bool has_failure() const noexcept;
  /// Throws the first undelivered failure, if any. It is thrown once. Under policy `warn` there is none.
  void throw_if_failed();
  /// Returns true if a checkpoint or a reported metric is being written or waits to be written.
  [[nodiscard]] bool busy() const;
  /// Returns the sizes of the checkpoints that are being written or wait to be written.
  [[nodiscard]] save_backlog backlog() const;
  /// Blocks until no checkpoint and no metric is left to write, and expired checkpoints are deleted.
  /// @errors The first undelivered failure.
  void drain();
  /// Like `drain()`, but blocks no longer than until `deadline`.
  /// @errors The first undelivered failure. `deadline_exceeded_error` if the saver is still busy at `deadline`.
  void drain(clock::time_point deadline);
  /// Calls `wake` once when no checkpoint and no metric is left to write: at once on this thread, or later on the pool's thread.
  /// This is the asynchronous form of `drain`.
  void when_idle(std::function<void()> wake);

  /// Blocks until all saves are finished, then releases the directory. A scheduled retry is made at once. The results stay
  /// readable. After a `drain` that reached its deadline, `close` does not block: the saves continue in the background, and the
  /// directory is released when they end. An undelivered failure is logged. Saving after `close` is an error. A second call does
  /// nothing.
  void close() noexcept;

  /// Like `close`, but does not block. The pool finishes the saves in progress, makes a scheduled retry at once, and then releases
  /// the directory.
  void detach() noexcept;
  /// Keeps `hold` alive until the directory is released by `close`, by `detach` or by the destructor, and then destroys it.
  /// Destroys it at once if the directory is already released.
  void hold_until_released(std::shared_ptr<void> hold);

  /// Returns the newest complete checkpoint of the directory (see `find_newest_whole`). Retention does not delete this checkpoint
  /// until another one is restored.
  [[nodiscard]] std::optional<checkpoint_reader> restore_newest();
  /// Returns the newest checkpoint written by this saver object.
  [[nodiscard]] std::optional<saved_checkpoint> latest() const;
  /// Returns the prefixes of the listed checkpoints, with the directory, oldest first.
  [[nodiscard]] std::vector<std::string> checkpoints() const;

  /// Excludes a checkpoint from deletion. `prefix` may be given with or without the directory.
  void pin(const std::string& prefix);
  /// Reports the value of the `keep_best` metric for a step, which may be saved already or later. NaN is never the best. A task on
  /// the pool writes the value to a small file. The value is durable when `drain` returns. Only a durable value can cause the
  /// deletion of a checkpoint.
  /// @errors `failed_precondition_error` after `close`.
  void report_metric(std::int64_t step, double value);

  [[nodiscard]] const std::string& directory() const noexcept;
  [[nodiscard]] const saver_options& options() const noexcept;

private:
  class core;
  std::shared_ptr<core> core_;
};

}  // namespace stepwell
