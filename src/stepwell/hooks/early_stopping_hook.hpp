// SPDX-License-Identifier: Apache-2.0
//
// A hook that requests a stop when a value no longer improves. The criterion is patience, or Prechelt's generalization loss, or both. At
// the close of the session, the hook can restore the best state.
#pragma once

#include "stepwell/base/detail/function_ref.hpp"
#include "stepwell/base/variable.hpp"
#include "stepwell/checkpoint/find_checkpoints.hpp"
#include "stepwell/hooks/detail/watched_value.hpp"
#include "stepwell/protocol/hook.hpp"
#include "stepwell/protocol/raw_session.hpp"
#include "stepwell/protocol/run_context.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace stepwell {

/// Selects whether lower or higher values are better.
using early_stopping_mode = metric_mode;

/// Options of `early_stopping_hook`. At least one of `patience` and `generalization_loss` is required.
struct early_stopping_options {
  /// Number of consecutive values without an improvement after which the hook requests a stop. At least 1.
  std::optional<std::int64_t> patience = std::nullopt;
  /// A value is an improvement if it is better than the best previous value by more than `min_delta`. At least zero.
  double min_delta = 0;
  early_stopping_mode mode = early_stopping_mode::minimize;
  /// Prechelt's alpha, in per cent: the hook requests a stop when 100 * (value / lowest value - 1) exceeds alpha. Requires values that are
  /// not negative, and the mode `minimize`. (L. Prechelt, "Early stopping - but when?", 1998.)
  std::optional<double> generalization_loss = std::nullopt;
  /// The value is checked after each run in which the global step reaches a multiple of this number. If a run does several steps and passes
  /// a multiple, the value is checked after that run or the next one. If a `std::optional` value is empty in such a run, the next run with
  /// a value is checked. If the hook watches a metric of an evaluation, it checks each new result, and this option has no effect.
  std::int64_t every_n_steps = 1;
  /// If true, the close of the session restores the variables of the model from the best checkpoint, even if this hook did not stop the
  /// training. The session must also have a `best_checkpoint_hook`, which saves the best checkpoint. If the directory of best checkpoints
  /// does not exist, the run with the first value fails with `failed_precondition_error`. The session makes its last checkpoint before this
  /// restore, so the last checkpoint has the state in which the training ended. The global step is not restored. Nothing is restored if the
  /// session ends because of a failure or a NaN, or if it is interrupted (see `session_ending`). A graph of TensorFlow that runs in this
  /// process has no state after the close: read its best state from the checkpoint that `best_checkpoint` finds.
  bool restore_best = false;
  /// The option `best_checkpoint_options::name` of the `best_checkpoint_hook`.
  std::string best_name = std::string(default_best_name);
  /// The option `best_checkpoint_options::directory` of the `best_checkpoint_hook`. Empty: the directory of the session's checkpoints.
  std::string best_directory = {};
  /// The name under which checkpoints store the state of the hook. Two `early_stopping_hook`s in one session need different names.
  std::string name = "early_stopping";
};

namespace detail {

/// The part of `early_stopping_hook` that does not depend on the watched value.
class early_stopping {
public:
  /// Discards all values and the best value.
  void begin() noexcept;

  /// Return the best value so far, and the global step of the state that has this value. Empty before the first value that is not NaN.
  [[nodiscard]] std::optional<double> best() const noexcept { return best_step_ < 0 ? std::nullopt : std::optional(best_); }
  [[nodiscard]] std::optional<std::int64_t> best_step() const noexcept { return best_step_ < 0 ? std::nullopt : std::optional(best_step_); }
  /// Returns the number of values since the best value.
  [[nodiscard]] std::int64_t waited() const noexcept { return waited_; }

  [[nodiscard]] variable_list variables();
  [[nodiscard]] const std::string& state_name() const noexcept { return options_.name; }

protected:
  early_stopping(std::string what, early_stopping_options options);

  /// Requests a stop if the restored state of the hook already demands it.
  void start(const session_requests& session);
  /// Adds a value. Requests a stop if a criterion is met.
  /// @errors `invalid_argument_error` if generalization loss is used and the value is negative. `failed_precondition_error` if
  /// `restore_best` is set and the directory of best checkpoints does not exist.
  void take(const session_requests& session, const number_of_step& value);

  using variables_user = function_ref<void(const variable_list&)>;
  [[nodiscard]] bool restores_best() const noexcept { return options_.restore_best; }
  /// Makes the session restore the best state after its last save. `with_variables(restore)` calls `restore` with the variables of the
  /// model.
  /// @errors Thrown by the close of the session: `not_found_error` if there is no best checkpoint; `data_loss_error` if the newest one is
  ///   missing or damaged.
  void restore_at_end(const session_requests& session, std::function<void(variables_user)> with_variables) const;
  template<class Session>
  void restore_at_end(Session& session) const {
    if (!restores_best()) { return; }
    restore_at_end(session, [&raw = session.raw_session()](variables_user restore) {
      [[maybe_unused]] const auto alone = detail::alone_with(raw);
      [[maybe_unused]] const auto pulled = detail::pull_variables(raw);
      restore(raw.variables());
      detail::push_variables(raw);
    });
  }

private:
  [[nodiscard]] std::string best_directory(const session_requests& session) const;
  [[nodiscard]] std::shared_ptr<io::file_system> best_files(const session_requests& session) const;
  void check_best_directory(const session_requests& session);
  void stop_if_over(const session_requests& session) const;
  [[nodiscard]] bool is_improvement(double value) const noexcept;
  [[nodiscard]] double loss_now() const noexcept;

  std::string what_;
  early_stopping_options options_;
  std::string loss_name_;    // name of the stop condition for the generalization loss
  bool is_checked_ = false;  // true after the first search for the directory of best checkpoints, whether it was found or not

  // The saved state.
  double best_ = 0;
  std::int64_t best_step_ = -1;  // -1: no value yet
  double lowest_ = 0;            // for generalization loss: ignores min_delta
  double last_ = 0;
  std::int64_t waited_ = 0;
};

}  // namespace detail

/// Watches a number, which is usually measured on data that is not used for training. Requests a stop if the number has not improved for
/// `patience` values, or if it is greater than its lowest value by more than `generalization_loss` per cent:
/// `early_stopping_hook{{.patience = 5}, &result::loss}`.
///
/// If the watched value is a `std::optional` number, runs in which it is empty are ignored. NaN does not count as an improvement. The
/// state of the hook is saved in checkpoints. If this hook has stopped a run, and the run is resumed with the same options, the session
/// does no step. The hook can also watch a metric that an `evaluate_every` hook measures:
/// `early_stopping_hook{{.patience = 5}, tested.value("loss")}`.
/// @errors `invalid_argument_error`, thrown by the run, if generalization loss is used and the number is negative.
///         `failed_precondition_error`, thrown by the creation of the session, if the session does not have the `evaluate_every` hook that
///         measures the metric.
template<class Watched>
class early_stopping_hook : public detail::early_stopping {
public:
  static constexpr auto phase = hook_phase::guard;
  using requests_only = early_stopping_hook;

  /// @errors `invalid_argument_error` for invalid options.
  early_stopping_hook(const early_stopping_options& options, Watched watched)
      : early_stopping(detail::name_of(watched, "the watched value"), options), watched_(detail::untagged(watched), options.every_n_steps) {
  }

  void after_create_session(auto& session, auto& /*threads*/) {
    const auto known = watched_.start(session, "early_stopping_hook");
    start(session);
    if (known) { take(session, *known); }
  }
  auto before_run(auto& context) { return watched_.request(context); }
  void after_run(auto& context, const auto& values) {
    if (const auto value = watched_.take(context, values)) { take(context, *value); }
  }
  void end(auto& session) { restore_at_end(session); }

private:
  detail::watched_number<detail::fetch_of<Watched>> watched_;
};

}  // namespace stepwell
