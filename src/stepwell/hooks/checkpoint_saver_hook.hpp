// SPDX-License-Identifier: Apache-2.0
//
// A hook that saves a checkpoint at the start of a fresh run (a run that did not restore a checkpoint of its directory), in each period,
// and at the end. This header also has the interface of listeners, which are notified of each save.
// @see contract HOOK-CKPT, D-5
#pragma once

#include "stepwell/base/cadence.hpp"
#include "stepwell/checkpoint/checkpoint_reader.hpp"
#include "stepwell/checkpoint/saver.hpp"
#include "stepwell/protocol/hook.hpp"
#include "stepwell/protocol/run_context.hpp"
#include "stepwell/summary/writer.hpp"

#include <chrono>
#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace stepwell {

namespace detail {
class checkpoint_work;
struct default_hooks;
class save_budget;
struct save_schedule;
}  // namespace detail

/// A listener is notified of each save. Override the functions that you need. If a listener throws, the other listeners are notified
/// nevertheless. Then the session throws the exception, between two steps or in `close`.
/// @threads The session's thread.
class checkpoint_saver_listener {
public:
  virtual ~checkpoint_saver_listener() = default;

  /// Called once for each session, before the raw session (the object that runs the model) is created.
  virtual void begin() {}
  /// Called before the state of `step` is copied. Not called for a save that is skipped. The function may read the state, but must not
  /// change it. If the save fails or is replaced by a newer save, `after_save` is not called for this save.
  virtual void before_save(std::int64_t /*step*/) {}
  /// Called when the checkpoint is durable: at the next place between two steps, or in `close`. Return true to request a stop of the
  /// session. The request is ignored for the checkpoint at the start of a fresh run, and for checkpoints that become durable while the
  /// session closes.
  virtual bool after_save(const saved_checkpoint& /*saved*/) { return false; }
  /// Called at the close, when the last save has ended. Not called if an exception ends the session. `step` is the last step.
  virtual void end(std::int64_t /*step*/) {}
};

/// Options of `checkpoint_saver_hook`. Required are `checkpoint_dir` and one of `save_secs`, `save_steps` and `save_overhead`.
struct checkpoint_saver_options {
  std::string checkpoint_dir = {};
  /// Periods between checkpoints.
  setting<seconds_value> save_secs = {};
  setting<std::int64_t> save_steps = {};
  /// Share of the training time that saving may cost, for example 0.02. The hook measures the two parts of the cost of each save. The first
  /// part is the time for which the save stops training. The second part is the extra time of the steps until the save has ended: their time,
  /// with all time between them, minus the time of as many steps without a save. From the mean cost, the hook chooses the interval to the
  /// next save within the bounds `save_interval`. The hook logs the interval if it has changed by more than a fifth, at most once in 10 s.
  /// The interval is never longer than `save_interval.max_interval`, even if saving then costs more than this share. Only a save that itself
  /// lasts longer makes it longer, because the hook begins no save before its previous save has ended. A process that resumes the training
  /// measures the cost again, and begins with `save_interval.min_interval`. After a recovery, the hook uses the earlier measurements.
  setting<double> save_overhead = {};
  interval_bounds save_interval = {};  ///< Bounds of the interval that `save_overhead` chooses. They need a `save_overhead`.
  saver_options saver = {};
  std::vector<std::shared_ptr<checkpoint_saver_listener>> listeners = {};  ///< Listeners that are notified of each checkpoint.
  /// The directory of the event file to which CHECKPOINT events are written. Empty: `checkpoint_dir`.
  std::string summary_dir = {};
  summary::writer_options events = {};  ///< Options of the event file in `summary_dir`.
  /// Minimum time between two log lines such as "saved run/model.ckpt-500, 18.3 MB in 42 ms". The last checkpoint of a session is always
  /// logged. 0: every checkpoint is logged.
  seconds_value log_every_secs = 10;
};

/// Copies the state in each period, and writes the copy in a background task. The state of every due step is saved. If a save becomes due
/// while earlier saves are in flight, its state is copied at once if all copies fit into `saver.max_staged_bytes`. Otherwise, the step
/// waits until an earlier save has ended. The other policies of `saver.when_busy` avoid this wait, but the speed of the disk then decides
/// which steps are saved. The files of a checkpoint are written when the body of the loop has handled its step, that is, when the next
/// operation of the session begins: a stop that the body requests belongs to this step, and the checkpoint contains it. If a write fails, the saver's `on_error` policy applies. With the policies `stop` and `retry`, the session throws
/// the failure between two steps or in `close`. While the training goes on, a wait for the disk has no limit. After a stop request, the wait
/// ends within the session's `stop_grace_period_secs` and, after a signal, within its `preemption_grace`.
/// @cost Memory: one copy of the variables for each save in flight. Several copies have at most `saver.max_staged_bytes` together; a single
///       copy may have any size. The memory is kept between saves that are less than a minute apart. Time: one relaxed load and one
///       comparison for each run; no clock is read. With `save_overhead`, each run during a save also calls `saver::busy`.
class checkpoint_saver_hook {
public:
  static constexpr auto phase = hook_phase::persist;

  /// Locks the directory.
  /// @errors `failed_precondition_error` if the directory is locked; the message names the owner. `invalid_argument_error` if
  ///   `checkpoint_dir` is empty, if the saver options are invalid, or if neither a period nor `save_overhead` is above zero. Failures of
  ///   the file system.
  explicit checkpoint_saver_hook(const checkpoint_saver_options& options);

  /// Returns a hook that locks the directory when the session begins, or at the first call of `saver()`. This function itself does not
  /// access the file system. Use the function for asynchronous sessions: they begin on a thread of stepwell, which may block.
  /// @errors `invalid_argument_error`, as for the constructor.
  [[nodiscard]] static checkpoint_saver_hook deferred(const checkpoint_saver_options& options);

  /// Returns a hook that saves nothing, for sessions in which saving is optional.
  [[nodiscard]] static checkpoint_saver_hook off() { return checkpoint_saver_hook(); }
  [[nodiscard]] bool is_on() const noexcept { return work_ != nullptr; }

  void begin();

  void after_create_session(auto& session, auto& /*threads*/) {
    if (work_) { start(session, session.global_step()); }
  }

  void after_run(auto& context, const auto&) {
    if (timer_.should_trigger_for_step(context.global_step())) [[unlikely]] { act(context, context.global_step()); }
  }

  /// Requests a save of the current state before the next step, unless this state is saved or being saved already. Returns false if the
  /// hook is off.
  bool save_now(auto& session) {
    if (work_ && !is_saved(session.global_step())) { request_save(session, session.global_step()); }
    return is_on();
  }

  void end(auto& session) {
    if (work_) { request_last_save(session, session.global_step()); }
  }

  /// Returns the saver of this hook, for example to pin or to list checkpoints. If a copy of the state waits for the end of the loop's body,
  /// its save begins now.
  /// @pre `is_on()`.
  [[nodiscard]] stepwell::saver& saver();

  /// Returns a function for `session_setup::find_checkpoint`. The function opens the newest checkpoint of the directory without
  /// verifying the checkpoint. The session verifies the checkpoint during the restore. If the checkpoint is damaged, the session restores
  /// an older checkpoint. The saver does not delete the restored checkpoint. The returned function may outlive this hook.
  /// @pre `is_on()`.
  [[nodiscard]] std::function<std::optional<checkpoint_reader>()> checkpoint_finder() const;

private:
  friend struct detail::default_hooks;

  checkpoint_saver_hook() = default;
  /// Like `deferred`, but saves at the times of `when` instead of those of `options`.
  checkpoint_saver_hook(const checkpoint_saver_options& options, const detail::save_schedule& when);
  void start(const session_requests& session, std::int64_t step);
  [[nodiscard]] bool is_saved(std::int64_t step) const noexcept;
  void act(const session_requests& session, std::int64_t step);
  void request_save(const session_requests& session, std::int64_t step);
  void act_after(std::chrono::duration<double> wait, const session_requests& session, std::int64_t step);
  void request_last_save(const session_requests& session, std::int64_t step) const;

  cadence period_;  // unused if `budget_` is not null
  second_or_step_timer timer_;
  std::shared_ptr<detail::checkpoint_work> work_;  // null if the hook is off
  std::shared_ptr<detail::save_budget> budget_;    // null if the period is fixed; shared with the work
};

/// Returns a hook that saves a checkpoint in `directory` every `n` steps, or once in each `period`: `save_every(500, "run")`. The
/// session of a chief that `monitored_training_session` makes with a `checkpoint_dir` has such a hook already.
/// @errors The errors of `checkpoint_saver_hook`.
template<std::integral Steps>
[[nodiscard]] checkpoint_saver_hook save_every(Steps n, std::string directory) {
  return checkpoint_saver_hook({.checkpoint_dir = std::move(directory), .save_steps = static_cast<std::int64_t>(n)});
}
template<class Rep, class Period>
[[nodiscard]] checkpoint_saver_hook save_every(std::chrono::duration<Rep, Period> period, std::string directory) {
  return checkpoint_saver_hook({.checkpoint_dir = std::move(directory), .save_secs = seconds_value(period)});
}

}  // namespace stepwell
