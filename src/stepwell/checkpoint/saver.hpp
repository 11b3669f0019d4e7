// SPDX-License-Identifier: Apache-2.0
//
// A saver writes snapshots in the background, maintains the list of checkpoints of its directory and deletes expired checkpoints.
#pragma once

#include "stepwell/base/cadence.hpp"
#include "stepwell/base/clock.hpp"
#include "stepwell/checkpoint/checkpoint_reader.hpp"
#include "stepwell/checkpoint/detail/save_backlog.hpp"
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
#include <stop_token>
#include <string>
#include <type_traits>
#include <vector>

namespace stepwell {

namespace io {
class pool;
}

/// Policy for a save that becomes due while its snapshot does not fit into `saver_options::max_staged_bytes`, because earlier snapshots are
/// held. A snapshot is held until it is written. With `wait`, every due step is saved. With the other policies, the speed of the disk
/// decides which steps are saved, and so from which step a recovery, a rollback or a restart continues.
enum class when_busy {
  wait,  ///< Block the step until earlier saves have ended. The state of every due step is saved.
  /// Postpone the save to the first step boundary (the place between two steps) at which the snapshot fits. No step blocks. All saves that
  /// become due before this boundary are done as one save, of the state at this boundary. The saves of `checkpoint_now`, of `close`, and of
  /// a process that ends are not postponed: they block. A saver without a session blocks, too.
  postpone,
  skip,  ///< Skip this save. No step blocks. Only the save of `close` is not skipped: it blocks.
  /// Replace the newest snapshots in the queue, which are not yet being written. If the snapshot still does not fit, block. If one snapshot
  /// fills `max_staged_bytes`, no snapshot is ever queued, so this policy then always blocks.
  coalesce,
};

/// Policy for a failed save.
class on_save_error {
public:
  /// Throws the failure later. A session throws it at the next step boundary or in `close`. A saver without a session throws it in the next
  /// `save`, `drain` or `throw_if_failed`.
  [[nodiscard]] static on_save_error stop() { return on_save_error(false, 0, {}); }
  /// Retries up to `attempts` times, then behaves like `stop`. The delay before the first retry is `first`. Each further delay is twice as
  /// long as the previous delay. A failure that cannot be transient, such as a full disk, is not retried.
  [[nodiscard]] static on_save_error retry(int attempts, clock::duration first = std::chrono::seconds(1)) {
    return on_save_error(false, attempts, first);
  }
  /// Logs the failure as a warning. Training continues, and the next save is tried as usual. But if another writer has taken over the
  /// directory, no later save can succeed; the failure is then thrown as with `stop`.
  [[nodiscard]] static on_save_error warn() { return on_save_error(true, 0, {}); }

  [[nodiscard]] bool only_warns() const noexcept { return only_warns_; }
  [[nodiscard]] int retries() const noexcept { return retries_; }
  [[nodiscard]] clock::duration first_wait() const noexcept { return first_wait_; }
  friend bool operator==(const on_save_error&, const on_save_error&) = default;

private:
  on_save_error(bool only_warns, int retries, clock::duration first_wait)
      : only_warns_(only_warns), retries_(retries), first_wait_(first_wait) {}

  bool only_warns_;
  int retries_;
  clock::duration first_wait_;
};

/// Options of a saver. Every option has a default. A null pointer selects the object that the whole process shares.
struct saver_options {
  std::string basename = "model.ckpt";  ///< Beginning of the file names, without a directory. "-" and the step are appended.
  /// Whether to write "model.ckpt-00000500" instead of "model.ckpt-500", so that names sort in the order of steps.
  bool pad_step_number = false;
  setting<int> max_to_keep = 5;  ///< Number of newest complete checkpoints to keep. If 0 or `none`, all are kept.
  /// Interval in hours for permanent checkpoints. A checkpoint that would be deleted is kept permanently if it was saved at least this many
  /// hours after the last checkpoint that is kept permanently. If there is no such checkpoint, the hours count from the first use of the
  /// directory.
  setting<double> keep_every_n_hours = none;
  std::vector<std::string> pinned = {};  ///< Checkpoints that are never deleted, for example "model.ckpt-500". See `saver::pin`.
  /// Maximum total size of the snapshots that are held at a time: the snapshot that is being written, and those in the queue. One snapshot
  /// is always held, whatever its size. Each snapshot is as large as the variables, and counts as at least 4 MiB, so that the queue is short
  /// for small models, too. The default is 64 MiB: up to 16 snapshots of a small model, and one snapshot if the variables have more than
  /// 32 MiB. 0: one snapshot at a time.
  std::size_t max_staged_bytes = std::size_t{64} << 20;
  stepwell::when_busy when_busy = stepwell::when_busy::wait;  ///< Policy for a save whose snapshot does not fit into `max_staged_bytes`.
  on_save_error on_error = on_save_error::stop();             ///< Policy for a failed save.
  int shards = 1;                                             ///< Number of data files of a checkpoint.
  /// Whether to sync files to disk. If false, saves are faster, but a power failure may lose them. A killed process does not lose them.
  bool sync = true;
  std::shared_ptr<io::file_system> file_system = nullptr;
  std::shared_ptr<io::pool> pool = nullptr;
  std::shared_ptr<stepwell::clock> clock = nullptr;
};

/// Throws `invalid_argument_error` naming the first invalid option, if there is one.
void check_saver_options(const saver_options& options);

/// A checkpoint that is complete, durable and listed in the state file.
struct saved_checkpoint {
  std::string prefix;  ///< With the directory: "run/model.ckpt-500".
  std::int64_t step = 0;
  std::uint64_t size_bytes = 0;             ///< Size of its data files and its index.
  std::chrono::duration<double> seconds{};  ///< Time from the start of writing until the checkpoint was durable. Of the last attempt only.
};

/// Outcome of passing a snapshot to a saver.
enum class save_outcome { queued, skipped, coalesced };

/// Saves snapshots to one directory. The saver holds a lock on the directory until the saver is closed or destroyed. A checkpoint becomes
/// visible only when it is complete: the saver syncs the data, then the index, then the state file (the list of the checkpoints). If the
/// process is killed at any instant, the previous checkpoints are intact. If the same step is saved again, the older checkpoint stays
/// unchanged until the new checkpoint is complete.
/// @threads All functions except the move constructor and the destructor may be called from any thread.
class saver {
public:
  /// Creates the directory, locks it, removes and logs the files of killed saves, and reads the state file. The saver keeps the absolute path,
  /// so a later change of the working directory has no effect.
  /// @errors `failed_precondition_error` naming the holder of the directory. `invalid_argument_error` for invalid options. Failures
  ///         of the file system.
  explicit saver(std::string directory, saver_options options = {});
  saver(saver&&) noexcept;
  saver& operator=(saver&&) = delete;
  /// Calls `close`, which only logs an undelivered failure: a failure of a save that no function has thrown yet. To get this failure as an
  /// exception, call `drain` before the destructor.
  /// @pre Not called on a thread of the saver's pool.
  ~saver();

  /// Returns a buffer for the next snapshot. If all buffers of the pool are in use, the `when_busy` policy applies. `wait` and `postpone`:
  /// blocks until a buffer is free. `skip`: returns none. `coalesce`: drops the newest queued snapshot and returns its buffer; if no
  /// snapshot is queued, blocks.
  /// `if (auto buffer = saver.acquire(pool)) { saver.save(snapshot::capture(std::move(*buffer), variables, step)); }`
  [[nodiscard]] std::optional<snapshot_pool::buffer> acquire(snapshot_pool& pool);
  /// Like `acquire`, but returns none if `acquire` would block or if the policy is `skip`. To wait without blocking, use
  /// `snapshot_pool::when_available`.
  [[nodiscard]] std::optional<snapshot_pool::buffer> try_acquire(snapshot_pool& pool);

  /// Returns true if a snapshot of `bytes` bytes fits into `max_staged_bytes`, so that `save` does not block. With the policy `coalesce`,
  /// drops queued snapshots to make room.
  [[nodiscard]] bool make_room(std::size_t bytes);
  /// Blocks until a snapshot of `bytes` bytes fits into `max_staged_bytes`, at most until `when` or until a stop is requested for `stop`.
  /// Returns true if it fits.
  bool wait_for_room(std::size_t bytes, clock::time_point when, const std::stop_token& stop = {});

  /// Queues a snapshot and returns; a task on the pool writes the snapshot. Saves are done in the order of the calls. If the snapshot does
  /// not fit into `max_staged_bytes`, the `when_busy` policy applies; the policy `postpone` then blocks. This wait has no deadline: call
  /// `wait_for_room` before, which has one.
  /// `before_commit` is called on the pool's thread when the data is durable and the index is not yet written. The checkpoint does
  /// not exist before `before_commit` returns. `before_commit` is called again at each retry. If it throws, the save fails with that
  /// exception.
  /// `if_failed` receives the snapshot if the save fails: on the pool's thread after all retries, or on the calling thread before this
  /// function throws. It is not called for a snapshot that is skipped or replaced. `if_failed` must not throw.
  /// @errors The undelivered failure of an earlier save (policies `stop` and `retry`). `failed_precondition_error` after `close`. In both
  ///         cases the snapshot is not saved.
  save_outcome save(snapshot taken, std::function<void()> before_commit = nullptr, std::function<void(snapshot)> if_failed = nullptr);
  /// Saves a snapshot and blocks until the checkpoint is durable. Expired checkpoints may be deleted after the return of this function (see
  /// `drain`). The `when_busy` policy does not apply: while the snapshot does not fit into `max_staged_bytes`, this function blocks. It has
  /// no deadline: call `save` and `wait_until_idle` if you need one.
  /// @errors The failure of this save, after all retries. `failed_precondition_error` after `close`.
  /// @pre    Not called on a thread of the saver's pool.
  saved_checkpoint save_and_wait(snapshot taken);
  template<class T>
    requires(!std::same_as<std::remove_cvref_t<T>, snapshot>)
  save_outcome save(T&&) {
    static_assert(std::same_as<T, snapshot>, "stepwell: a saver takes a snapshot; a live view could change while it is written");
    return save_outcome::skipped;
  }

  /// Registers a callback for successful saves. The callback is called on the pool's thread, in the order of the saves. It must not wait
  /// for the saver. Exceptions of the callback are logged. A new callback replaces the previous callback. When this function returns, the
  /// previous callback is not running, unless the previous callback itself has called this function.
  void on_saved(std::function<void(const saved_checkpoint&)> callback);
  /// Registers a callback for failed saves. The callback is called for each save that has failed after all retries, under every policy of
  /// `on_error`. Otherwise like `on_saved`.
  void on_failure(std::function<void(std::exception_ptr)> callback);

  /// Returns true if there is an undelivered failure: a failure of a save that no function has thrown yet.
  /// @cost One relaxed load, so it can be called at every step boundary.
  [[nodiscard]] bool has_failure() const noexcept;
  /// Throws the undelivered failure, if there is one. It is thrown once. While there is an undelivered failure, further failures are only
  /// logged. With the policy `warn`, a failure is undelivered only if another writer has taken over the directory.
  void throw_if_failed();
  /// Returns true if a checkpoint is being written or waits to be written.
  [[nodiscard]] bool busy() const;
  /// Returns the sizes of the checkpoints that are being written or wait to be written.
  [[nodiscard]] save_backlog backlog() const;
  /// Returns a function F(when, stop). F blocks until all saves that this saver accepted before the call of F have ended: the checkpoint is
  /// durable, the save has failed, or a newer snapshot has replaced the snapshot. F returns false if this has not happened at the time
  /// `when` of the saver's clock, or when a stop is requested for `stop`. F throws nothing, and may outlive the saver. If another saver
  /// calls F in its `before_commit`, the checkpoint of the other saver does not exist before the checkpoints of this saver.
  /// @pre F is not called on a thread of this saver's pool.
  [[nodiscard]] std::function<bool(clock::time_point, const std::stop_token&)> waits_for_accepted() const;
  /// Blocks until no checkpoint is left to write, at most until `when`, or until a stop is requested for `stop`. Returns true if none is
  /// left. A retry whose delay would end after `when` is made at once.
  bool wait_until_idle(clock::time_point when, const std::stop_token& stop = {}) const;
  /// Blocks until no checkpoint is left to write, and until expired checkpoints are deleted.
  /// @errors The first undelivered failure.
  void drain();
  /// Like `drain()`, but blocks no longer than until `deadline`.
  /// @errors The first undelivered failure. `deadline_exceeded_error` if the saver is still busy at `deadline`.
  void drain(clock::time_point deadline);

  /// Blocks until all saves have ended, then releases the directory. A retry that waits for its delay is made at once. Functions that only
  /// read, such as `latest` and `checkpoints`, may be called after `close`. An undelivered failure is logged. After `close`, `save` throws.
  /// A second call of `close` does nothing.
  ///
  /// If the last `drain` reached its deadline while a checkpoint was being written, `close` does not block. The saves then continue in the
  /// background as long as the process lives, the directory stays locked until they end, and an error is logged.
  void close() noexcept;

  /// Like `close`, but never blocks for a save. The pool finishes the saves in flight and then releases the directory. A retry that waits
  /// for its delay is made at once. The callbacks of `on_saved` and `on_failure` are not called any more.
  void detach() noexcept;
  /// Keeps `hold` alive until the directory is released after `close`, `detach` or the destructor, and then destroys `hold`. If the
  /// directory is already released, destroys `hold` at once.
  void hold_until_released(std::shared_ptr<void> hold);

  /// Returns the newest complete checkpoint of the directory, after verifying it (see `latest_whole_checkpoint`). From now on, the saver does not
  /// delete this checkpoint, until another checkpoint is restored.
  [[nodiscard]] std::optional<checkpoint_reader> restore_newest();
  /// Like `restore_newest`, but does not verify the checkpoint (see `stepwell::open_newest`). The checkpoint is protected from deletion
  /// only after `search()->accept` of the returned reader was called. A session calls it when it has restored the checkpoint.
  [[nodiscard]] std::optional<checkpoint_reader> open_newest();
  /// Returns the newest checkpoint written by this saver object.
  [[nodiscard]] std::optional<saved_checkpoint> latest() const;
  /// Returns the prefixes of the checkpoints in the list of the directory. A prefix contains the directory. The oldest checkpoint is first.
  [[nodiscard]] std::vector<std::string> checkpoints() const;

  /// Excludes a checkpoint from deletion. `checkpoint` is its prefix with or without the directory, one of its files, or its step. A name or
  /// step after that of the newest checkpoint stands for a checkpoint that is saved later.
  /// @errors `not_found_error` if there is no such checkpoint.
  void pin(const std::string& checkpoint);

  /// Returns false if the locked directory was moved or removed. The saver then saves nothing, even if another directory has its path.
  [[nodiscard]] bool is_in_place() const noexcept;
  /// Returns the absolute path of the directory.
  [[nodiscard]] const std::string& directory() const noexcept;
  [[nodiscard]] const saver_options& options() const noexcept;

private:
  struct core;
  std::shared_ptr<core> core_;
};

}  // namespace stepwell
