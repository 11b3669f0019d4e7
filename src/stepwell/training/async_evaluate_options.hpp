// SPDX-License-Identifier: Apache-2.0
//
// Where an awaited evaluation runs, and where its numbers go.
#pragma once

#include "stepwell/checkpoint/restore.hpp"
#include "stepwell/session/async_options.hpp"
#include "stepwell/summary/writer.hpp"

#include <memory>
#include <utility>

namespace stepwell {

/// A class with functions, not an aggregate: it may be made inside an awaited expression.
///     async_evaluate_options().evaluates_on(pool.get_executor()).writes_to(events)
class async_evaluate_options {
public:
  using executor_type = async_options::executor_type;

  async_evaluate_options() = default;

  /// The evaluation is called on `executor`. Unless said, on a thread of its own that ends with it.
  /// @lifetime Its context must outlive the evaluation, or fail to run what it is given.
  async_evaluate_options& evaluates_on(executor_type executor) {
    evaluates_on_ = std::move(executor);
    return *this;
  }
  /// As `async_options::runs_on`: for completion handlers without an executor of their own.
  async_evaluate_options& runs_on(executor_type executor) {
    completions_.runs_on(std::move(executor));
    return *this;
  }
  /// What the evaluation returns, numbers by tag (`summary::names_metrics`), is written there with the step of the snapshot.
  async_evaluate_options& writes_to(std::shared_ptr<summary::writer> events) {
    events_ = std::move(events);
    return *this;
  }
  /// How the names of the model and of the snapshot meet, as `{.names = ema_names(model.variables())}`.
  async_evaluate_options& restores(restore_options how) {
    restore_ = std::move(how);
    return *this;
  }

  /// Empty: a thread of its own.
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
