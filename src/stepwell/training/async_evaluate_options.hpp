// SPDX-License-Identifier: Apache-2.0
//
// Options of `async_evaluate`: the executor, and the destination of the numbers.
#pragma once

#include "stepwell/checkpoint/restore.hpp"
#include "stepwell/session/async_session.hpp"
#include "stepwell/summary/writer.hpp"

#include <memory>
#include <utility>

namespace stepwell {

/// Options of `async_evaluate`. A class with functions instead of an aggregate, so that it can be created inside an awaited expression.
///
///     async_evaluate_options().evaluates_on(pool.get_executor()).writes_to(events)
class async_evaluate_options {
public:
  using executor_type = async_options::executor_type;

  async_evaluate_options() = default;

  /// Sets the executor that calls the evaluation. By default a separate thread calls it and then ends.
  /// @lifetime The context of the executor must either outlive the evaluation or discard its work.
  async_evaluate_options& evaluates_on(executor_type executor) {
    evaluates_on_ = std::move(executor);
    return *this;
  }
  /// Sets the executor for completion handlers without an associated executor, like `async_options::runs_on`.
  async_evaluate_options& runs_on(executor_type executor) {
    completions_.runs_on(std::move(executor));
    return *this;
  }
  /// Sets the writer for the numbers that the evaluation returns (`summary::names_metrics`). They are written with the step of the
  /// snapshot.
  async_evaluate_options& writes_to(std::shared_ptr<summary::writer> events) {
    events_ = std::move(events);
    return *this;
  }
  /// Sets how names of the model map to names in the snapshot, for example `{.names = ema_names(model.variables())}`.
  async_evaluate_options& restores(restore_options how) {
    restore_ = std::move(how);
    return *this;
  }

  /// Returns the executor of the evaluation. Empty: a separate thread.
  [[nodiscard]] const executor_type& evaluates_on() const noexcept { return evaluates_on_; }
  [[nodiscard]] executor_type executor() const { return completions_.executor(); }
  [[nodiscard]] const std::shared_ptr<summary::writer>& events() const noexcept { return events_; }
  [[nodiscard]] const restore_options& restore() const noexcept { return restore_; }

private:
  executor_type evaluates_on_;
  async_options completions_;
  std::shared_ptr<summary::writer> events_;
  restore_options restore_;
};

}  // namespace stepwell
