// SPDX-License-Identifier: Apache-2.0
//
// A metric that `evaluate_every` measures during the training, for the hooks that watch this metric.
#pragma once

#include "stepwell/base/detail/unset.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stepwell {

class snapshot;

namespace detail {

/// The results of the evaluations that one `evaluate_every` hook makes. A result of an evaluation in the loop takes effect at once. A
/// result of an evaluation beside the training takes effect when the next evaluation is due. If `count` has changed since a watching hook
/// last read it, a new result has taken effect.
/// @threads The session's thread.
struct evaluation_board {
  std::vector<std::string> names;  // of the metrics
  std::vector<double> values;      // newest values that have taken effect; `unset_number` before the first result
  std::int64_t step = -1;          // step of the state to which `values` belong
  std::int64_t count = 0;          // number of results that have taken effect
  /// True if `values` are those of a snapshot, which an evaluation beside the training has evaluated. False if they are those of the state
  /// after this run.
  bool is_of_snapshot = false;
  /// True if the session began with an evaluation of the restored state, because the previous run was stopped during this evaluation. Its
  /// result is new for the watching hooks.
  bool is_repeated = false;
  /// True while a session has the hook that makes the evaluations.
  bool has_session = false;
  /// Functions called with the values of an evaluated snapshot when the session receives them, before the values take effect. The key is
  /// the owner of the function.
  std::map<const void*, std::function<void(const std::vector<double>& values, const snapshot& evaluated)>> on_evaluated_snapshot = {};
};

}  // namespace detail

/// One metric of an evaluation that `evaluate_every` makes. `early_stopping_hook` and `best_checkpoint_hook` can watch the metric. Other
/// hooks fetch the metric like any value of a run, for example `log_every(100, tag("accuracy", tested.value("accuracy")))`. They get the
/// newest result that has taken effect, or an empty optional before the first one. A result of an evaluation in the loop takes effect in
/// the run after which it was made. A result of an evaluation beside the training takes effect when the next evaluation is due.
/// @threads The session's thread.
class evaluated_value {
public:
  evaluated_value(std::shared_ptr<detail::evaluation_board> board, std::size_t index) : board_(std::move(board)), index_(index) {}

  [[nodiscard]] const std::string& name() const noexcept { return board_->names[index_]; }
  /// Returns the newest result that has taken effect. Empty before the first result. If the metric was added to a run that is continued,
  /// the results of other metrics in its checkpoint do not count.
  [[nodiscard]] std::optional<double> value() const noexcept { return detail::if_set(board_->values[index_]); }
  /// Returns the step of the state to which `value()` belongs. -1 before the first result.
  [[nodiscard]] std::int64_t step() const noexcept { return board_->step; }
  /// Returns the number of results that have taken effect, including those of earlier runs of the program.
  [[nodiscard]] std::int64_t count() const noexcept { return board_->count; }

  /// Returns `value()`. With this function, the object can be used as a fetch in any model session.
  template<class Result>
  [[nodiscard]] std::optional<double> operator()(const Result& /*result*/) const noexcept {
    return value();
  }

  /// Checks that a session has the `evaluate_every` hook that measures this metric. `hook` is the name of the hook that watches the metric.
  /// @errors `failed_precondition_error` if no session has that hook. The metric would then never get a result.
  void check_is_measured(std::string_view hook) const;

  /// Returns true if the session began with an evaluation of the restored state.
  [[nodiscard]] bool is_repeated() const noexcept { return board_->is_repeated; }
  /// Returns true if `value()` is the result of a snapshot, made by an evaluation beside the training.
  [[nodiscard]] bool is_of_snapshot() const noexcept { return board_->is_of_snapshot; }
  /// Registers `react`, which is called with each later result of a snapshot and with this snapshot. It is called on the session's thread
  /// when the session receives the result, which may be before the result takes effect. A later registration with the same `owner`
  /// replaces `react`.
  void on_evaluated_snapshot(const void* owner, std::function<void(double, const snapshot&)> react) const {
    board_->on_evaluated_snapshot[owner] = [react = std::move(react), index = index_](const std::vector<double>& values,
                                                                                      const snapshot& of) { react(values[index], of); };
  }

private:
  std::shared_ptr<detail::evaluation_board> board_;
  std::size_t index_;
};

}  // namespace stepwell
