// SPDX-License-Identifier: Apache-2.0
//
// The boundary is the time between two steps in which a session does the work that its hooks requested, such as a save. This header has the
// interface of such work, the state that the work receives, and the metrics that it reports. It also has the function that decides whether
// a state can still be saved when the process is about to end.
#pragma once

#include "stepwell/base/clock.hpp"
#include "stepwell/base/detail/function_ref.hpp"
#include "stepwell/base/variable.hpp"
#include "stepwell/checkpoint/saver.hpp"
#include "stepwell/checkpoint/snapshot.hpp"
#include "stepwell/checkpoint/update_fence.hpp"
#include "stepwell/hook/run_ending.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stepwell {

/// The prefix of the names of the variables that the library adds to a checkpoint. A model must not use this prefix.
inline constexpr std::string_view reserved_prefix = "stepwell/";
inline constexpr std::string_view hook_state_prefix = "stepwell/hook/";
inline constexpr std::string_view source_state_prefix = "stepwell/source/";
/// The name of the variable in which a session saves the layout version. The tensor `stepwell/saver/version` is unrelated to it: a saver
/// writes that tensor, with or without a session, to recognise the checkpoints that it may delete.
inline constexpr std::string_view version_name = "stepwell/version";
/// The layout version of the library's own variables in a checkpoint. A session rejects later versions, and supports earlier versions.
inline constexpr std::int64_t state_version = 1;
inline constexpr std::string_view global_step_name = "global_step";

/// The copy of the state from which a recovery continues while the session has no checkpoint.
/// @threads Any.
class recovery_copy {
public:
  /// Keeps `taken` instead of the previous copy. The memory of `taken` leaves its pool, which gets an empty buffer in exchange. If
  /// `is_initial` is true, `taken` is the state at the first creation of the session, and a recovery also repeats the initialisation. If
  /// `is_initial` is false, `taken` is a complete state, like that of a checkpoint.
  void keep(snapshot taken, bool is_initial);
  void drop() noexcept;
  /// Calls `restore` with the copy and returns true. Returns false if there is no copy, or if the copy was kept with another `is_initial`.
  bool restore(bool is_initial, function_ref<void(const snapshot&)> restore) const;
  /// Returns the memory of the copy in bytes, without strings.
  [[nodiscard]] std::size_t held_bytes() const noexcept;

private:
  mutable std::mutex mutex_;
  std::optional<snapshot> kept_;
  bool is_initial_ = false;
};

/// The complete state at a boundary. All hooks of the step have run.
/// @lifetime Valid during the call that receives it.
struct boundary_state {
  std::int64_t global_step;
  variable_list variables;  ///< Variables of the model, `global_step`, and the library's own variables below `stepwell/`.
  /// Blocks until all records (of event files and metric files) up to this step are durable, at most until
  /// `session_signals::end_of_commit_waits`. The function may be called on any thread and at any later time. Empty if there are no records.
  /// @see `boundary_work::start_flush`
  std::function<void()> wait_for_records = nullptr;
  /// True if the process is about to end. The save is then not postponed.
  bool is_last = false;
  /// The copy from which a recovery continues while the session has no checkpoint. Null if there is a checkpoint, or if the session keeps
  /// no copy. Work that saves the state must drop the copy before it takes a snapshot. If the save fails, the work must keep the snapshot
  /// as the copy.
  std::shared_ptr<recovery_copy> copy = nullptr;
  /// The fence at which the next step waits before it changes variables. A snapshot may still be copied while that step computes, until the
  /// step has waited at the fence. Null if a snapshot must be copied at once.
  update_fence* fence = nullptr;

  /// Copies the state into `memory`. If there is a `fence`, the copy is completed while the next step runs. Otherwise, idle threads of
  /// `helpers` may take part in the copy. @errors The errors of `snapshot::capture`.
  [[nodiscard]] snapshot capture(snapshot_pool::buffer memory, io::pool* helpers = nullptr) const {
    return fence ? snapshot::capture(std::move(memory), variables, global_step, *fence)
                 : snapshot::capture(std::move(memory), variables, global_step, helpers);
  }
};

/// A point in time on the session's clock, which can be converted to the same point in time on another clock.
class deadline {
public:
  deadline(const clock& source, clock::time_point when) noexcept : source_(&source), when_(when) {}

  /// Returns a deadline that never passes.
  [[nodiscard]] static deadline never(const clock& source) noexcept { return {source, clock::time_point::max()}; }

  /// Returns the time of `other` at which the deadline passes. The remaining time is the same on both clocks.
  [[nodiscard]] clock::time_point on(const clock& other) const {
    if (&other == source_ || when_ == clock::time_point::max()) { return when_; }
    return other.now() + (when_ - source_->now());
  }
  /// Returns the remaining time. Returns zero if the deadline has passed.
  [[nodiscard]] clock::duration remaining() const {
    if (when_ == clock::time_point::max()) { return clock::duration::max(); }
    return std::max(when_ - source_->now(), clock::duration::zero());
  }

private:
  const clock* source_;
  clock::time_point when_;
};

/// The decision about a state that should be saved before a preemption, that is, before the process has to end, for example because a
/// scheduler takes the machine.
enum class preemption_choice {
  save,    ///< The state is saved, after the saves in flight.
  finish,  ///< The state is not saved: there is not enough time for it. The saves in flight are expected to become durable.
  leave,   ///< The state is not saved, and the saves in flight are not expected to become durable either.
};

/// The input of `plan_preemption`.
struct preemption_facts {
  std::chrono::duration<double> left{};           ///< Time until everything must be on the disk.
  std::uint64_t state_bytes = 0;                  ///< Size of the state that is due to be saved.
  save_backlog under_way = {};                    ///< Saves in flight, which are written first.
  std::uint64_t measured_bytes = 0;               ///< Total size of the saves so far.
  std::chrono::duration<double> measured_time{};  ///< Total duration of the saves so far.
};

/// The result of `plan_preemption`: the decision, and the times on which it is based.
struct preemption_plan {
  preemption_choice choice = preemption_choice::save;
  std::chrono::duration<double> left{};  ///< Remaining time at the moment of the decision.
  /// Expected durations: `for_all` of the saves in flight and of the save of the state together, `for_backlog` of the saves in flight
  /// alone. Empty if no save has been measured.
  std::optional<std::chrono::duration<double>> for_all = std::nullopt;
  std::optional<std::chrono::duration<double>> for_backlog = std::nullopt;

  /// Returns one sentence for log messages.
  [[nodiscard]] std::string to_string() const;
};

/// Decides whether a state is saved before the process ends. The state is saved if it is expected to be durable in time. The expected
/// duration is 1.25 times the time in which the rest of the saves in flight and then the state can be written, at the mean rate of the
/// saves so far. If the save that is being written is already slower than this rate, the rate of that save is used. If no save has been
/// measured, or if no time is left and the process is still alive, the state is saved. The reason is that an interrupted save is harmless,
/// and that the directory may still lack a checkpoint.
[[nodiscard]] preemption_plan plan_preemption(const preemption_facts& known) noexcept;

/// The metrics of a session at one moment.
/// @threads A copy; `metrics()` of a session may be called on any thread.
struct session_metrics {
  /// The step that the session has reached: the last step that it has done. Before its first step, the step at which it began. A recovery
  /// changes the number only when the next step is done.
  std::int64_t global_step = 0;

  std::int64_t recoveries = 0;  ///< Attempts to recover, successful or not.
  std::int64_t creations = 0;   ///< Creations of the session: the first one, and one for each recovery that created the session again.
  std::int64_t rollbacks = 0;   ///< Rollbacks requested by hooks.

  std::int64_t saves = 0;                          ///< Durable checkpoints.
  std::int64_t saves_failed = 0;                   ///< Saves that failed permanently.
  std::int64_t saves_skipped = 0;                  ///< Saves that were due but skipped, because the disk was too slow.
  std::int64_t saves_postponed = 0;                ///< Saves that were due during another save, and therefore made later.
  std::int64_t saves_waited = 0;                   ///< Saves that were made in time, but first waited until earlier saves had ended.
  std::int64_t bytes_saved = 0;                    ///< Total size of all durable checkpoints.
  std::chrono::duration<double> last_save_time{};  ///< Time from the copy of the state until the checkpoint was durable.
  std::chrono::duration<double> total_save_time{};
  std::chrono::duration<double> total_save_wait{};  ///< Time for which the session was blocked by the waits that `saves_waited` counts.
  save_backlog under_way = {};                      ///< Saves in flight: accepted, but not yet durable.
  /// The most recent decision about the last save, made after a signal had requested the process to end. Empty if none was made.
  std::optional<preemption_plan> preemption = std::nullopt;

  std::size_t snapshot_bytes = 0;                        ///< Bytes held for snapshots of saves and for the recovery copy, without strings.
  std::map<std::string, std::size_t> queue_depths = {};  ///< Number of elements in the queue of each queue runner, by the queue's name.
};

/// The metrics of one of several sessions.
struct named_metrics {
  std::string session;  ///< The name of the session. Each session needs another name.
  session_metrics metrics;
};

/// Returns the metrics of all `sessions` in the text format of Prometheus, for an HTTP server of the program: one line for each number,
/// with the label `session="NAME"` unless the name is empty. Prometheus can derive rates: `rate(stepwell_global_step[1m])` are steps per
/// second. In names, U+FFFD replaces bytes that are not UTF-8.
/// @errors `invalid_argument_error` if two names are equal. @threads Any.
[[nodiscard]] std::string prometheus_text(std::span<const named_metrics> sessions);
/// Like the other overload, for one session.
/// @threads Any.
[[nodiscard]] std::string prometheus_text(const session_metrics& metrics, std::string_view session_name = {});

/// The newest value of something that a hook measures, such as the mean of an epoch or a metric of an evaluation.
struct history_value {
  std::string name;       ///< The name of the value. Values of an evaluation have the names of their tags: "validation/loss".
  double value = 0;       ///< The value. It may be NaN.
  std::int64_t step = 0;  ///< The global step of the state to which the value belongs.
};

/// A request to restore the newest checkpoint, made by a hook that detected a bad state. The session handles the request like a failure
/// from which it recovers.
/// @see `session_requests::request_rollback`
struct rollback_request {
  /// The reason, for the log and for errors.
  std::string why;
  /// If true, the loop skips the batch of this step when it reaches the batch again. This requires a loop over a seekable source.
  /// Otherwise, the failure is thrown to the caller after the restore.
  bool skip_batch = false;
  /// Called after the restore, for example to lower the learning rate, so that the same failure does not occur again.
  std::function<void()> answer = nullptr;
};

/// Work that a session does for a hook, at boundaries and at the close. A hook registers it with `session_requests::add_work`.
/// @threads All functions are called on the session's thread, except `report`.
class boundary_work {
public:
  virtual ~boundary_work();

  /// Accepts the state for saving, without blocking on a disk. Returns false if it cannot accept the state now: the session then calls
  /// `wait_ready` and tries again. Called after `request_save`, when all hooks of the step have run. Also called before the process ends,
  /// if `wants_last_save` returned true. Not called for a state that a hook rejected, nor for a state that is not expected to become
  /// durable before the end of the process.
  virtual bool try_save(const boundary_state& /*state*/) { return true; }
  /// Blocks until `try_save` can accept a state, or until a stop is requested for `stop`. The session then calls `try_save` again.
  /// @errors `deadline_exceeded_error` if `until` passes before a state can be accepted.
  virtual void wait_ready(const deadline& /*until*/, const std::stop_token& /*stop*/) {}
  /// Returns true if `try_save` has postponed a save that can be made now. The session then calls `try_save` again. Called at boundaries,
  /// after `process_events`.
  [[nodiscard]] virtual bool is_save_due() { return false; }

  /// Starts to make all records that this work has written durable, without blocking on a disk. Returns a function that blocks until the
  /// records are durable, at most until `session_signals::end_of_commit_waits`. If writing them fails or lasts longer, that function logs
  /// this and returns. It may be called on any thread, and may outlive this object. Returns an empty function if this work writes no
  /// records. Called when a state is saved, because the checkpoint is committed only after these records are durable.
  [[nodiscard]] virtual std::function<void()> start_flush() { return nullptr; }

  /// Returns true if this work should save the state of `step` before the process ends. The session then calls `try_save`, if the save is
  /// expected to be durable in time.
  [[nodiscard]] virtual bool wants_last_save(std::int64_t /*step*/) const { return false; }

  /// Processes events from background threads. Called at the next boundary after a call of `session_signals::notify`, and after `drain` of
  /// all works.
  /// @errors Failures of the background work.
  virtual void process_events() {}

  /// Called after a traced run: at the end of its boundary, or when the run has failed. An exception is logged as a warning.
  virtual void end_trace() {}

  /// Blocks until pending work is done. Called at the close, after `end` of all hooks; at each recovery; and for `checkpoint_now`.
  /// @errors Failures of the pending work. `deadline_exceeded_error` if `until` passes before the work is done.
  virtual void drain(const deadline& /*until*/) {}
  /// Records how the session ended. Called at the close, after `drain` of all works and before `flush` of any work.
  virtual void write_ending(const run_ending& /*ending*/) {}
  /// Flushes all output. Called last at the close; nothing is written afterwards.
  /// @errors `deadline_exceeded_error` if the output is not written when `until` passes.
  virtual void flush(const deadline& /*until*/) {}

  /// Starts to write the remaining output, without blocking. The background threads finish it. Called if an asynchronous session is
  /// destroyed without a close.
  virtual void detach() {}
  /// Keeps `hold` alive until this work has unlocked all files that it had locked, even if it unlocks them in the background.
  virtual void hold_until_released(const std::shared_ptr<void>& /*hold*/) {}

  /// Adds the newest values that this work has measured to `all`. Called at the end of `run_all`.
  virtual void add_history(std::vector<history_value>& /*all*/) const {}

  /// Adds the metrics of this work to `all`.
  /// @threads Any: may be called at the same time as the other functions.
  virtual void report(session_metrics& /*all*/) const {}
};

}  // namespace stepwell
