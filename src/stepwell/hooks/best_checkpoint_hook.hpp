// SPDX-License-Identifier: Apache-2.0
//
// A hook that saves a checkpoint in its own directory whenever a watched value is better than ever before.
#pragma once

#include "stepwell/checkpoint/find_checkpoints.hpp"
#include "stepwell/checkpoint/saver.hpp"
#include "stepwell/hooks/detail/watched_value.hpp"
#include "stepwell/protocol/hook.hpp"
#include "stepwell/protocol/run_context.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace stepwell {

/// Options of `best_checkpoint_hook`. Every option has a default.
struct best_checkpoint_options {
  metric_mode mode = metric_mode::minimize;  ///< Whether lower or higher values are better.
  int keep = 1;  ///< Number of checkpoints to keep: the best checkpoint, and those that were the best before it. At least 1.
  /// A value counts as better only if it is lower (or higher, see `mode`) than the best value so far by more than `min_delta`.
  double min_delta = 0;
  /// The value is checked after each run in which the global step reaches a multiple of this number. If a run does several steps and passes
  /// a multiple, the value is checked after that run or the next one. If a `std::optional` value is empty in such a run, the next run with
  /// a value is checked. If the hook watches a metric of an evaluation, this option is not used: each new value of the metric is checked.
  std::int64_t every_n_steps = 1;
  /// The checkpoints are in the directory `directory/name`. Two such hooks in one session need different names.
  std::string name = std::string(default_best_name);
  std::string directory = {};  ///< Empty: the directory of the session's checkpoints.
  /// Minimum time between two log lines such as "best: accuracy 0.953 at step 1027". 0: every new best value is logged.
  seconds_value log_every_secs = 10;
  /// Options of the saver. The hook replaces `basename`, `max_to_keep`, `max_staged_bytes` and `when_busy`. `pool` must be null, because
  /// the hook has its own thread.
  saver_options saver = {};
};

namespace detail {

class best_work;

/// The part of `best_checkpoint_hook` that does not depend on the watched value.
class best_checkpoints {
public:
  static constexpr auto phase = hook_phase::average;  // called before the hook that saves the periodic checkpoints

  /// A move is a copy, so that a hook that was moved from is like a copy.
  best_checkpoints(const best_checkpoints&) = default;
  best_checkpoints& operator=(const best_checkpoints&) = default;
  ~best_checkpoints() = default;

  /// Returns the best checkpoint that is saved or being saved, in this run or an earlier run. If the restored checkpoint of the session
  /// records a better state, but the checkpoint of that state is missing, returns the value, step and prefix of the missing checkpoint.
  /// Empty if there is none, and before the session exists.
  [[nodiscard]] std::optional<scored_checkpoint> best() const;

  void begin() noexcept;
  /// Returns the state of the hook: value and step of the last best state that was accepted for saving.
  [[nodiscard]] variable_list variables();
  [[nodiscard]] const std::string& state_name() const noexcept;

protected:
  best_checkpoints(std::string what, best_checkpoint_options options);

  /// Opens the directory at the first call. Registers `work_` with the session.
  void start(const session_requests& session);
  /// Records that a run was checked for a value. For a metric of an evaluation, every run is recorded.
  void note_run() noexcept { has_run_ = true; }
  /// Compares the value of the current state with the best value so far. If it is better, requests a save of this state.
  void take(const session_requests& session, const number_of_step& value);
  /// Returns a function that compares the value of an earlier state with the best value so far. If it is better, the function saves the
  /// snapshot of that state.
  [[nodiscard]] std::function<void(double, const snapshot&)> taker_of_snapshots() const;
  [[nodiscard]] const void* identity() const noexcept { return work_.get(); }
  /// Checks at the close that there is a best state.
  /// @errors `failed_precondition_error` if all values were NaN or empty, and there is no best checkpoint of an earlier session; not thrown
  ///         if no run was checked. `data_loss_error` if the best state is lost. None if the session was interrupted.
  void finish(const session_requests& session) const;

private:
  best_checkpoint_options options_;
  std::shared_ptr<best_work> work_;
  bool has_run_ = false;
};

}  // namespace detail

/// Saves a checkpoint when the watched number is better than the numbers of all best checkpoints saved before, including those of earlier
/// runs in the same directory: `best_checkpoint_hook{{.mode = metric_mode::minimize, .keep = 2}, &result::validation_loss}`. The hook
/// watches a number of the result or the model, or a metric of an evaluation (`evaluate_every`). Of a metric, the hook saves the state that
/// was evaluated, even if later steps have changed the model since then. A `std::optional` number counts only in the runs in which it has a
/// value. NaN is never better. `best_checkpoint(directory)` finds the best checkpoint, and returns its prefix, value and step. Every
/// function that restores or evaluates a checkpoint accepts this prefix.
///
/// By default, the checkpoints are in the directory `best` below the directory of the session. `keep` decides how many are kept. The
/// watched number is part of the checkpoint. A periodic checkpoint of the session is committed only after all earlier best checkpoints are
/// durable. So a run that is killed and resumed has the same best checkpoint as an uninterrupted run. There are two exceptions. If the
/// hook's saver has the policy `on_save_error::warn`, a failed save does not prevent the commit. If the process is about to end, and a best
/// checkpoint is still being written when a quarter of the grace period is left, the hook logs a warning, and the checkpoint of the session
/// is committed first.
///
/// If the save of a best state fails, the hook keeps the copy of this state. It saves the copy again with the next periodic checkpoint, in
/// a recovery, and at the close. The checkpoints of the session record the value and the step of the best state. If a resumed session does
/// not find the checkpoint of this state in the directory, the hook logs a warning and saves only better states. If there was no better
/// state, the close fails.
///
/// If a state should be saved while the previous best checkpoint is still being written, the session blocks until that checkpoint is
/// written. If workers step the same model, they may do some steps between the run that has the value and the save. The checkpoint then
/// contains the later state and its global step.
/// @errors When the session begins: `failed_precondition_error` if neither the options nor the session give a directory, or if the session
///         does not have the `evaluate_every` hook that measures the metric. At the close,
///         unless the session was interrupted: `failed_precondition_error` if at least one run was checked, all values were NaN or empty,
///         and there is no best checkpoint of an earlier session. For a metric of an evaluation, every run counts as checked, so the close
///         also fails if no evaluation was made. `data_loss_error` if the best state is lost. At every close, if the best state could not
///         be saved: the failure of its last save, or `unavailable_error` if that failure was logged or thrown before.
/// @cost Memory and time of one copy of the variables while a best checkpoint is saved. Memory of a second copy while the state of a failed
///   save is kept. One thread, which writes the best checkpoints.
template<class Watched>
class best_checkpoint_hook : public detail::best_checkpoints {
public:
  using requests_only = best_checkpoint_hook;

  /// @errors `invalid_argument_error` that names an invalid option.
  best_checkpoint_hook(const best_checkpoint_options& options, Watched watched)
      : best_checkpoints(detail::name_of(watched, "the watched value"), options),
        watched_(detail::untagged(watched), options.every_n_steps) {}
  /// Uses the default options.
  explicit best_checkpoint_hook(Watched watched) : best_checkpoint_hook(best_checkpoint_options{}, std::move(watched)) {}

  void after_create_session(auto& session, auto& /*threads*/) {
    const auto known = watched_.start(session, "best_checkpoint_hook");
    start(session);
    if constexpr (is_metric) { watched_.metric().on_evaluated_snapshot(identity(), taker_of_snapshots()); }
    take_if_current(session, known);
  }
  auto before_run(auto& context) { return watched_.request(context); }
  void after_run(auto& context, const auto& values) {
    if (!watched_.is_due()) { return; }
    note_run();
    take_if_current(context, watched_.take(context, values));
  }
  void end(auto& session) { finish(session); }

private:
  static constexpr bool is_metric = std::is_same_v<detail::fetch_of<Watched>, evaluated_value>;

  /// Takes a value, unless `taker_of_snapshots` has got it with the snapshot of its state.
  void take_if_current(const session_requests& session, const std::optional<detail::number_of_step>& value) {
    if constexpr (is_metric) {
      if (watched_.metric().is_of_snapshot()) { return; }
    }
    if (value) { take(session, *value); }
  }

  detail::watched_number<detail::fetch_of<Watched>> watched_;
};

}  // namespace stepwell
