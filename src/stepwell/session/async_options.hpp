// SPDX-License-Identifier: Apache-2.0
//
// Options of an asynchronous session: the executors and threads on which its parts run.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/system_executor.hpp>

#include <optional>
#include <utility>

namespace stepwell {

/// Options of an asynchronous session. A class with setters instead of an aggregate, so that it may be created inside an awaited
/// expression:
///
///     async_options().steps_on(pool.get_executor())
class async_options {
public:
  using executor_type = boost::asio::any_io_executor;

  async_options() = default;

  /// Runs steps and the hooks around them on `executor`, one at a time, so that the executor of the caller stays responsive. By default
  /// they run on the executor of the caller and block it meanwhile.
  /// @lifetime The execution context of `executor` must outlive the session, or it must destroy posted functions that it does not run.
  async_options& steps_on(executor_type executor) {
    compute_ = std::move(executor);
    return *this;
  }
  /// Runs operations whose completion handler has no executor (plain callbacks and futures) on `executor`. By default they run on Asio's
  /// system executor, which has its own threads.
  async_options& runs_on(executor_type executor) {
    executor_ = std::move(executor);
    return *this;
  }

  /// Declares whether the creation of the session may wait for another session, as a worker waits for its chief. If so, it runs on a thread
  /// of its own, otherwise on one of a few threads that all sessions share. By default, a creation by a creator of the user may wait.
  async_options& creation_waits(bool may_wait) {
    creation_waits_ = may_wait;
    return *this;
  }

  [[nodiscard]] bool has_compute() const noexcept { return static_cast<bool>(compute_); }
  [[nodiscard]] const executor_type& compute() const noexcept { return compute_; }
  [[nodiscard]] executor_type executor() const { return executor_ ? executor_ : executor_type(boost::asio::system_executor()); }
  [[nodiscard]] std::optional<bool> creation_waits() const noexcept { return creation_waits_; }

private:
  executor_type compute_;
  executor_type executor_;
  std::optional<bool> creation_waits_;
};

}  // namespace stepwell
