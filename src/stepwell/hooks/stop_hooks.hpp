// SPDX-License-Identifier: Apache-2.0
//
// Hooks that end the loop: at a step, after an epoch, when a criterion holds, after a time limit, or after a number of evaluation steps.
// @see contract HOOK-STOP, HOOK-MULTI, D-6
#pragma once

#include "stepwell/base/cadence.hpp"
#include "stepwell/base/clock.hpp"
#include "stepwell/base/error.hpp"
#include "stepwell/base/variable.hpp"
#include "stepwell/protocol/hook.hpp"
#include "stepwell/protocol/run_context.hpp"
#include "stepwell/protocol/session_signals.hpp"

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace stepwell {

class coordinator;

/// Options of `stop_at_step_hook`. Exactly one of `num_steps` and `last_step` is required.
struct stop_at_step_options {
  /// Number of steps to do, counted from the global step at which the session starts. A recovery does not change the last step.
  std::optional<std::int64_t> num_steps = std::nullopt;
  std::optional<std::int64_t> last_step = std::nullopt;  ///< The global step after which to stop.
};

/// Requests a stop when the global step reaches the last step. If a session was restored at or after the last step, its loop does no step.
/// If a recovery or a rollback restores an earlier step, the loop continues to the last step again.
/// @cost One comparison for each run.
/// @see contract D-6
class stop_at_step_hook {
public:
  /// @errors `invalid_argument_error` if neither option or both options are given, or if an option is negative.
  /// @see contract D-31
  explicit stop_at_step_hook(stop_at_step_options options) : num_steps_(options.num_steps) {
    if (options.num_steps.has_value() == options.last_step.has_value()) {
      throw invalid_argument_error("stop_at_step_hook: exactly one of num_steps and last_step must be specified");
    }
    detail::refuse_negative("num_steps", options.num_steps);
    detail::refuse_negative("last_step", options.last_step);
    if (options.last_step) { last_step_ = *options.last_step; }
  }

  void after_create_session(auto& session, auto& /*threads*/) {
    if (num_steps_) {
      if (__builtin_add_overflow(std::int64_t{session.global_step()}, *num_steps_, &last_step_)) {
        last_step_ = std::numeric_limits<std::int64_t>::max();
      }
      num_steps_.reset();  // only once: a recovery does not change the last step
    }
    session.note_last_step(last_step_);
    stop_if_reached(session);
  }
  void after_run(auto& context, const auto&) { stop_if_reached(context); }

  [[nodiscard]] std::int64_t last_step() const noexcept { return last_step_; }

private:
  void stop_if_reached(auto& session) {
    if (session.global_step() >= last_step_) [[unlikely]] { stop(*session.signals()); }
  }
  /// Takes no reference to the context of a run, because the compiler would then have to keep the context of every run in memory.
  [[gnu::noinline, gnu::cold]] void stop(session_signals& signals) const {
    signals.request_stop_by_hook({stop_cause::last_step, "step " + std::to_string(last_step_) + " is done"});
  }

  std::optional<std::int64_t> num_steps_;
  std::int64_t last_step_ = std::numeric_limits<std::int64_t>::max();
};

/// Returns a hook that stops at the global step `last_step`: `stop_at_step(1000)`.
/// @errors The errors of `stop_at_step_hook`.
[[nodiscard]] inline stop_at_step_hook stop_at_step(std::int64_t last_step) { return stop_at_step_hook({.last_step = last_step}); }

/// Options of `multi_step_stop_at_step_hook`. Exactly one of `num_steps` and `last_step` is required.
struct multi_step_stop_at_step_options {
  std::optional<std::int64_t> num_steps = std::nullopt;  ///< Like `stop_at_step_options::num_steps`.
  std::optional<std::int64_t> last_step = std::nullopt;  ///< Like `stop_at_step_options::last_step`.
  std::int64_t steps_per_run = 1;                        ///< Maximum number of steps in a run, above zero.
};

/// A `stop_at_step_hook` for a model whose function `step` does several steps in one run. Such a model counts its steps itself, with a
/// function `global_step()`. Before each run, the hook stores the number of steps that the run should do. If the model does this number of
/// steps, the last run does not go beyond the last step.
/// ```
/// sw::multi_step_stop_at_step_hook stop{{.last_step = 1000, .steps_per_run = 64}};
/// model.steps_to_make = stop.steps_per_run(); // std::shared_ptr<const std::int64_t>
/// ```
class multi_step_stop_at_step_hook {
public:
  /// @errors `invalid_argument_error` unless exactly one of `num_steps` and `last_step` is given. The same error if this number is
  ///         negative, or if `steps_per_run` is not above zero.
  explicit multi_step_stop_at_step_hook(multi_step_stop_at_step_options options)
      : stop_({.num_steps = options.num_steps, .last_step = options.last_step}), most_(options.steps_per_run),
        next_(std::make_shared<std::int64_t>(options.steps_per_run)) {
    if (most_ >= 1) { return; }
    throw invalid_argument_error("multi_step_stop_at_step_hook: invalid steps_per_run=" + std::to_string(most_) +
                                 "; it must be above zero");
  }

  void after_create_session(auto& session, auto& threads) {
    stop_.after_create_session(session, threads);
    tell(session.global_step());
  }
  void after_run(auto& context, const auto& values) {
    stop_.after_run(context, values);
    tell(context.global_step());
  }

  /// Returns a pointer to the number of steps that the next run should do: min(last_step - global_step, steps_per_run), at least zero.
  /// @threads The hook changes the number on the session's thread, between two runs.
  [[nodiscard]] std::shared_ptr<const std::int64_t> steps_per_run() const noexcept { return next_; }
  [[nodiscard]] std::int64_t last_step() const noexcept { return stop_.last_step(); }

private:
  void tell(std::int64_t step) { *next_ = step >= stop_.last_step() ? 0 : std::min(stop_.last_step() - step, most_); }

  stop_at_step_hook stop_;
  std::int64_t most_;
  std::shared_ptr<std::int64_t> next_;
};

/// Options of `stop_at_epoch_hook`. `last_epoch` is required.
struct stop_at_epoch_options {
  std::optional<std::int64_t> last_epoch = std::nullopt;  ///< Number of the last epoch; the first epoch of the data is number 1.
  std::string name = "stop_at_epoch";                     ///< Name of the hook's state in checkpoints.
};

/// Requests a stop after the last batch of epoch number `last_epoch`, counted from 1, of a source with epochs (`data::epoch_source`). The
/// number of complete epochs is saved in checkpoints. If a session is restored with `last_epoch` or more complete epochs, its loop does no
/// step; if the checkpoint was made without this hook, it does one step. A source with the option `.epochs` ends the loop itself after that
/// number of epochs, without this hook. The hook is for sources that are endless, or that several loops share.
/// @cost One call of `is_last_of_epoch` of the source for each run of a loop over a source with epochs.
class stop_at_epoch_hook {
public:
  /// @errors `invalid_argument_error` if `last_epoch` is missing or negative, or the name is empty.
  explicit stop_at_epoch_hook(stop_at_epoch_options options) : options_(std::move(options)) {
    if (!options_.last_epoch) { throw invalid_argument_error("stop_at_epoch_hook: last_epoch must be specified"); }
    detail::refuse_negative("last_epoch", options_.last_epoch);
    if (options_.name.empty()) { throw invalid_argument_error("stop_at_epoch_hook: the name is empty; its state is saved under it"); }
  }

  void begin() noexcept { epochs_done_ = 0; }
  void after_create_session(auto& session, auto& /*threads*/) { stop_if_reached(session); }
  void after_run(auto& context, const auto&) {
    const auto at = context.epoch();
    if (!at) { return; }
    const auto done = static_cast<std::int64_t>(at->epoch) + (at->is_last ? 1 : 0);
    if (!at->is_last && done <= epochs_done_) [[likely]] { return; }  // more: the last batch of the epoch before was skipped
    epochs_done_ = done;
    stop_if_reached(context);
  }

  /// Returns the number of complete epochs, including those before the last start of the program.
  [[nodiscard]] std::int64_t epochs_done() const noexcept { return epochs_done_; }
  [[nodiscard]] variable_list variables() { return stepwell::variables({{"epochs_done", epochs_done_}}); }
  [[nodiscard]] const std::string& state_name() const noexcept { return options_.name; }

private:
  void stop_if_reached(auto& session) const {
    session.note_stop_condition({.name = "last epoch",
                                 .text = "ends after epoch " + std::to_string(*options_.last_epoch),
                                 .unit = "epochs",
                                 .reached = static_cast<double>(epochs_done_),
                                 .limit = static_cast<double>(*options_.last_epoch)});
    if (epochs_done_ < *options_.last_epoch) { return; }
    session.request_stop({stop_cause::last_step, "epoch " + std::to_string(*options_.last_epoch) + " is done"});
  }

  stop_at_epoch_options options_;
  std::int64_t epochs_done_ = 0;
};

/// Returns a hook that stops after `last_epoch` complete epochs: `stop_at_epoch(10)`.
/// @errors The errors of `stop_at_epoch_hook`.
[[nodiscard]] inline stop_at_epoch_hook stop_at_epoch(std::int64_t last_epoch) {
  return stop_at_epoch_hook(stop_at_epoch_options{.last_epoch = last_epoch});
}

/// The hook that `stop_when` returns.
template<class Predicate>
class stop_when_hook {
public:
  static constexpr auto phase = hook_phase::guard;

  stop_when_hook(Predicate predicate, std::string why) : predicate_(std::move(predicate)), why_(std::move(why)) {}

  void after_create_session(auto& session, auto& /*threads*/) { stop_if_met(session); }
  void after_run(auto& context, const auto&) { stop_if_met(context); }

private:
  void stop_if_met(auto& session) {
    if (is_met(session.global_step())) [[unlikely]] { stop(*session.signals()); }
  }
  [[nodiscard]] bool is_met(std::int64_t step) {
    if constexpr (std::predicate<Predicate&, std::int64_t>) {
      return std::invoke(predicate_, step);
    } else {
      static_assert(std::predicate<Predicate&>,
                    "stepwell: the predicate of stop_when takes (std::int64_t step), or nothing, and returns a bool");
      return std::invoke(predicate_);
    }
  }
  [[gnu::noinline, gnu::cold]] void stop(session_signals& signals) const { signals.request_stop_by_hook({stop_cause::criterion, why_}); }

  Predicate predicate_;
  std::string why_;
};

/// Returns a hook that requests a stop, with `stop_cause::criterion` and the text `why`, when `predicate` returns true:
/// `stop_when([&] { return model.energy < 1e-6; }, "the energy is low enough")`. `predicate` takes the global step, or nothing. It is called
/// after each run, when the hooks of the phases `observe` and `user` have been called. It is also called before the first step, and after
/// each recovery, when the state has been restored: a finished training that is started again does no step, and one with a new limit
/// continues. If a recovery or a rollback restores an earlier state, the loop continues until `predicate` returns true again.
/// @pre `predicate` changes nothing. It depends only on the step and on state that checkpoints contain: `variables()` of the model, values of
///   `evaluate_every`, and other state of hooks. Other values are lost at a restart, so use a stop that the checkpoint contains for them: call
///   `request_stop` of the session or the context, for example in the function of `every_n_steps`. The initial state must not meet the
///   criterion. In a group, all processes have this hook.
/// @errors If `predicate` throws, the run or the creation of the session fails.
/// @cost One call of `predicate` for each run.
/// @see D-42
template<class Predicate>
[[nodiscard]] stop_when_hook<Predicate> stop_when(Predicate predicate, std::string why = "the criterion of stop_when is met") {
  return stop_when_hook<Predicate>(std::move(predicate), std::move(why));
}

/// Requests a stop, with `stop_cause::deadline`, when the time `limit` has passed since the session was created:
/// `time_limit_hook{std::chrono::hours(2)}`. The time is measured on the session's clock. The loop ends after the current step. A recovery
/// does not restart the time.
/// @cost A step costs nothing, because an alarm of the session's clock requests the stop.
class time_limit_hook {
public:
  /// @errors `invalid_argument_error` if `limit` is not above zero.
  explicit time_limit_hook(seconds_value limit);

  void begin() { alarm_ = nullptr; }

  void after_create_session(const session_requests& session, coordinator& threads);
  void end(const session_requests& /*session*/) { alarm_ = nullptr; }

private:
  seconds_value limit_;
  std::unique_ptr<alarm> alarm_;  // null before the first creation of the session, and after its end
};

/// Options of `stop_after_n_evals_hook`.
struct stop_after_n_evals_options {
  std::optional<std::int64_t> num_evals = std::nullopt;  ///< Number of runs. Empty: the hook requests no stop.
  bool log_progress = true;                              ///< If true, logs the progress as "Evaluation [3/10]".
};

/// Counts the runs of the session and requests a stop after `num_evals` runs. Unless `log_progress` is false, logs the progress as
/// "Evaluation [3/10]". If `num_evals` is below 20, the hook logs after each run. If `num_evals` is 20 or more, the hook logs once every
/// `num_evals` / 10 runs (rounded down), and after the last run. Without `num_evals`, the hook logs "Evaluation [3]" after each run.
class stop_after_n_evals_hook {
public:
  /// @errors `invalid_argument_error` if `num_evals` is negative.
  /// @see contract D-31
  explicit stop_after_n_evals_hook(stop_after_n_evals_options options) : options_(options) {
    detail::refuse_negative("num_evals", options.num_evals);
  }

  void begin() { evals_completed_ = 0; }

  void after_create_session(auto& session, auto& /*threads*/) {
    if (options_.num_evals) {
      session.note_stop_condition({.name = condition,
                                   .text = "ends after " + std::to_string(*options_.num_evals) + " evaluation steps",
                                   .unit = "evaluation steps",
                                   .reached = static_cast<double>(evals_completed_),
                                   .limit = static_cast<double>(*options_.num_evals)});
    }
    if (is_done()) { session.request_stop(why()); }  // stops before the first run if `num_evals` is 0
  }

  void after_run(auto& context, const auto&) {
    ++evals_completed_;
    context.note_stop_progress(condition, static_cast<double>(evals_completed_));
    if (options_.log_progress) { log_progress(context); }
    if (is_done()) { context.request_stop(why()); }
  }

  /// Returns the number of runs since the session began.
  [[nodiscard]] std::int64_t evals_completed() const noexcept { return evals_completed_; }

private:
  static constexpr const char* condition = "number of evaluations";

  [[nodiscard]] bool is_done() const noexcept { return options_.num_evals && evals_completed_ >= *options_.num_evals; }
  [[nodiscard]] stop_reason why() const { return {stop_cause::last_step, std::to_string(evals_completed_) + " evaluation steps are done"}; }
  void log_progress(const session_requests& session) const;

  stop_after_n_evals_options options_;
  std::int64_t evals_completed_ = 0;
};

}  // namespace stepwell
