// SPDX-License-Identifier: Apache-2.0
//
// A number that an evaluation in the training loop measures, for the hooks that watch it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace stepwell {

class snapshot;

namespace detail {

/// The results of one evaluation hook. A hook that watches a result compares `count` with the count that it saw last.
/// @threads The session's thread.
struct evaluation_board {
  std::vector<std::string> names;  // of the metrics
  std::vector<double> values;      // of the newest evaluation in effect; NaN before the first one
  std::int64_t step = -1;          // of the state that was evaluated
  std::int64_t count = 0;          // of all evaluations in effect
  /// True if the values belong to a snapshot of an earlier step, not to the current state.
  bool is_of_snapshot = false;
  /// Called with the values as soon as the evaluation of a snapshot has ended, before they take effect.
  std::map<const void*, std::function<void(const std::vector<double>& values, const snapshot& evaluated)>> on_evaluated_snapshot = {};
};

}  // namespace detail

/// One metric of an evaluation. `early_stopping_hook` and `best_checkpoint_hook` watch it: they see each new result in the run in which it
/// takes effect. Other hooks fetch it like any value of a run, for example `log_every(100, tag("accuracy", tested.value("accuracy")))`.
/// They get the newest result, or an empty optional before the first one.
/// @threads The session's thread.
class evaluated_value {
public:
  evaluated_value(std::shared_ptr<detail::evaluation_board> board, std::size_t index) : board_(std::move(board)), index_(index) {}

  [[nodiscard]] const std::string& name() const noexcept { return board_->names[index_]; }
  /// Returns the newest result in effect. Empty before the first one.
  [[nodiscard]] std::optional<double> value() const noexcept {
    return board_->count == 0 ? std::nullopt : std::optional(board_->values[index_]);
  }
  /// Returns the step of the state that was evaluated. -1 before the first result.
  [[nodiscard]] std::int64_t step() const noexcept { return board_->step; }
  /// Returns the number of results so far, including those of earlier runs.
  [[nodiscard]] std::int64_t count() const noexcept { return board_->count; }

  /// Returns `value()`, so that this object is a fetch of any model session.
  template<class Result>
  [[nodiscard]] std::optional<double> operator()(const Result& /*result*/) const noexcept {
    return value();
  }

  /// Returns true if the newest result is that of a snapshot of an earlier step.
  [[nodiscard]] bool is_of_snapshot() const noexcept { return board_->is_of_snapshot; }
  /// Calls `react` with each later result of a snapshot, and the snapshot, as soon as the result is known. A later call with the same
  /// `owner` replaces `react`.
  void on_evaluated_snapshot(const void* owner, std::function<void(double, const snapshot&)> react) const {
    board_->on_evaluated_snapshot[owner] = [react = std::move(react), index = index_](const std::vector<double>& values,
                                                                                      const snapshot& of) { react(values[index], of); };
  }

private:
  std::shared_ptr<detail::evaluation_board> board_;
  std::size_t index_;
};

}  // namespace stepwell
