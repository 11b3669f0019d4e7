// SPDX-License-Identifier: Apache-2.0
//
// A saver writes snapshots in the background, maintains the list of checkpoints of its directory and deletes expired checkpoints.
#pragma once

#include "stepwell/base/cadence.hpp"
#include "stepwell/base/clock.hpp"
#include "stepwell/checkpoint/checkpoint_reader.hpp"
#include "stepwell/checkpoint/snapshot.hpp"

#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace stepwell {

namespace io {
class pool;
}

/// Policy for a save while the maximum number of snapshots is held.
enum class when_busy {
  /// Postpone the save to the first step boundary at which a save in flight has ended. No step blocks. All saves that become due before
  /// this boundary are done as one save. The saves of `checkpoint_now`, of `close`, and of a process that ends are not postponed: they
  /// block. A saver without a session blocks, too.
  postpone,
  wait,      ///< Block the step until the disk has caught up; every save happens.
  skip,      ///< Skip this save.
  coalesce,  ///< Replace the newest queued snapshot that is not yet being written. Use it with `max_staged` of at least 2.
};

/// Policy for a failed save.
class on_save_error {
public:
  /// Delivers the failure: a session throws it at the next step boundary; a saver without a session throws it in the next `save` or
  /// `drain`.
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

/// Options of a saver. Every option has a default. A null pointer selects the process-wide object.
struct saver_options {
  std::string basename = "model.ckpt";  ///< A file name; the step is appended.
  /// Whether to write "model.ckpt-00000500" instead of "model.ckpt-500", so that names sort in the order of steps.
  bool pad_step_number = false;
  setting<int> max_to_keep = 5;  ///< Number of newest complete checkpoints to keep. If 0 or `none`, all are kept.
  /// Interval in hours for permanent checkpoints. A checkpoint that would be deleted is kept permanently if at least this many hours have
  /// passed since the previous checkpoint that was kept permanently.
  setting<double> keep_every_n_hours = none;
  std::vector<std::string> pinned = {};  ///< Prefixes of checkpoints that are never deleted, for example "model.ckpt-500".
  /// Maximum number of snapshots held, including the one being written. Each takes the memory of the variables.
  std::size_t max_staged = 1;
  stepwell::when_busy when_busy = stepwell::when_busy::postpone;  ///< Policy for a save while `max_staged` snapshots are held.
  on_save_error on_error = on_save_error::stop();                 ///< Policy for a failed save.
  int shards = 1;                                                 ///< Number of data files of a checkpoint.
  /// Whether to sync files to disk. If false, saves are faster, but a power failure may lose them. A killed process does not lose them.
  bool sync = true;
  std::shared_ptr<io::file_system> file_system = nullptr;
  std::shared_ptr<io::pool> pool = nullptr;
  std::shared_ptr<stepwell::clock> clock = nullptr;
};

/// Throws `invalid_argument_error` naming the first invalid option, if there is one.
void check_saver_options(const saver_options& options);

/// Sizes of the checkpoints that were passed to a saver and are not durable yet.
struct save_backlog {
  std::uint64_t writing_bytes = 0;              ///< Size of the checkpoint that is being written.
  std::chrono::duration<double> writing_for{};  ///< Time since the start of writing this checkpoint.
  std::uint64_t waiting_bytes = 0;              ///< Size of the checkpoints in the queue.

  [[nodiscard]] bool empty() const noexcept { return writing_bytes == 0 && waiting_bytes == 0; }

  /// Adds the backlog of another saver that writes at the same time. `writing_for` becomes the longer of both times.
  save_backlog& operator+=(const save_backlog& other) noexcept {
    writing_bytes += other.writing_bytes;
    writing_for = std::max(writing_for, other.writing_for);
    waiting_bytes += other.waiting_bytes;
    return *this;
  }
};

/// A checkpoint that is complete, durable and listed in the state file.
struct saved_checkpoint {
  std::string prefix;  ///< With the directory: "run/model.ckpt-500".
  std::int64_t step = 0;
  std::uint64_t size_bytes = 0;             ///< Size of the variables.
  std::chrono::duration<double> seconds{};  ///< Time from the start of writing until durable.
};

/// Outcome of passing a snapshot to a saver.
enum class save_outcome { queued, skipped, coalesced };

/// Saves snapshots to one directory. The saver holds a lock on the directory until it is closed or destroyed. A checkpoint becomes visible
/// only when it is complete: the saver syncs the data, then the index, then the state file. A kill at any instant leaves the previous
/// checkpoints intact. If the same step is saved again, the older checkpoint stays unchanged until the new one is complete.
/// @threads All functions except the move constructor and the destructor may be called from any thread.
class saver {
public:
  /// Creates the directory, locks it, removes the files of killed saves with a warning, and reads the state file.
  /// @errors `failed_precondition_error` naming the holder of the directory. `invalid_argument_error` for invalid options. Failures
  ///         of the file system.
  explicit saver(std::string directory, saver_options options = {});
  saver(saver&&) noexcept;
  saver& operator=(saver&&) = delete;
  /// Calls `close`, which only logs an undelivered failure. To get the failure as an exception, call `drain` before.
  /// @pre Not called on a thread of the saver's pool.
  ~saver();

  /// Returns a buffer for the next snapshot. If all buffers of the pool are in use, the `when_busy` policy decides: `wait` and `postpone`
  /// block until one is free, `skip` returns none, `coalesce` drops the newest queued snapshot and returns its buffer, or blocks if no
  /// snapshot is queued.
  /// `if (auto buffer = saver.acquire(pool)) { saver.save(snapshot::capture(std::move(*buffer), variables, step)); }`
  [[nodiscard]] std::optional<snapshot_pool::buffer> acquire(snapshot_pool& pool);
  /// Like `acquire`, but returns none if `acquire` would block or if the policy is `skip`. To wait without blocking, use
  /// `snapshot_pool::when_available`.
  [[nodiscard]] std::optional<snapshot_pool::buffer> try_acquire(snapshot_pool& pool);

  /// Queues a snapshot and returns; a task on the pool writes it. Saves are done in the order of the calls. If as many snapshots as
  /// allowed are held, the `when_busy` policy applies.
  /// `before_commit` is called on the pool's thread when the data is durable and the index is not yet written. The checkpoint does
  /// not exist before `before_commit` returns. It is called again at each retry. If it throws, the save fails with that exception.
  /// `if_failed` receives the snapshot if it cannot be saved: on the pool's thread when the save is given up, or in this call before it
  /// throws. It must not throw.
  /// @errors The undelivered failure of an earlier save (policies `stop` and `retry`); the snapshot is then dropped.
  ///         `failed_precondition_error` after `close`.
  save_outcome save(snapshot taken, std::function<void()> before_commit = nullptr, std::function<void(snapshot)> if_failed = nullptr);
  /// Saves a snapshot and blocks until it is durable. Expired checkpoints may be deleted a moment later (see `drain`). Saves the snapshot
  /// in any case: the `when_busy` policy does not apply.
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
  /// the saver. Its exceptions are logged. A new callback replaces the previous one. When this function returns, the previous callback is
  /// not running, unless this function was called by the previous callback itself.
  void on_saved(std::function<void(const saved_checkpoint&)> callback);
  /// Registers a callback for failed saves. It is called for each save that is given up after all retries, under every policy.
  void on_failure(std::function<void(std::exception_ptr)> callback);

  /// Returns true if a failure has not been delivered yet.
  /// @cost One relaxed load, so it can be called at every step boundary.
  [[nodiscard]] bool has_failure() const noexcept;
  /// Throws the first undelivered failure, if there is one. Each failure is thrown once. With the policy `warn`, there is never an
  /// undelivered failure.
  void throw_if_failed();
  /// Returns true if a checkpoint is being written or waits to be written.
  [[nodiscard]] bool busy() const;
  /// Returns the sizes of the checkpoints that are being written or wait to be written.
  [[nodiscard]] save_backlog backlog() const;
  /// Returns a function that blocks until all saves that were accepted before its call have ended: the checkpoints are durable, or their
  /// saves have failed. It throws nothing, and may outlive the saver. A second saver calls it in `before_commit`, so that its checkpoint
  /// does not exist before those of this one.
  /// @pre The function is not called on a thread of this saver's pool.
  [[nodiscard]] std::function<void()> waits_for_accepted() const;
  /// Blocks until no checkpoint is left to write, and expired checkpoints are deleted.
  /// @errors The first undelivered failure.
  void drain();
  /// Like `drain()`, but blocks no longer than until `deadline`.
  /// @errors The first undelivered failure. `deadline_exceeded_error` if the saver is still busy at `deadline`.
  void drain(clock::time_point deadline);

  /// Blocks until all saves are finished, then releases the directory. A scheduled retry is made at once. The results stay
  /// readable. An undelivered failure is logged. `save` fails after `close`. A second call of `close` does nothing. After a `drain` that
  /// reached its deadline, `close` does not block: the saves continue in the background as long as the process lives, the directory stays
  /// locked until they end, and a line is logged. If a later `drain` succeeds, `close` blocks again.
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
  /// Like `restore_newest`, but does not verify the checkpoint (see `stepwell::open_newest`). Retention does not delete the checkpoint
  /// after `search()->accept` has been called for it.
  [[nodiscard]] std::optional<checkpoint_reader> open_newest();
  /// Returns the newest checkpoint written by this saver object.
  [[nodiscard]] std::optional<saved_checkpoint> latest() const;
  /// Returns the prefixes of the listed checkpoints, with the directory, oldest first.
  [[nodiscard]] std::vector<std::string> checkpoints() const;

  /// Excludes a checkpoint from deletion. `prefix` may be given with or without the directory.
  void pin(const std::string& prefix);

  [[nodiscard]] const std::string& directory() const noexcept;
  [[nodiscard]] const saver_options& options() const noexcept;

private:
  struct core;
  std::shared_ptr<core> core_;
};

}  // namespace stepwell
