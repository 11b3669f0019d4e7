// SPDX-License-Identifier: Apache-2.0
//
// A hook that saves a checkpoint at the start of a fresh run (a run that did not restore a checkpoint of its directory), in each period,
// and at the end.
// @see contract HOOK-CKPT, D-5
#pragma once

#include "stepwell/base/cadence.hpp"
#include "stepwell/checkpoint/checkpoint_reader.hpp"
#include "stepwell/checkpoint/saver.hpp"
#include "stepwell/protocol/hook.hpp"
#include "stepwell/protocol/hook_options.hpp"
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
