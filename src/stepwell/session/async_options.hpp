// SPDX-License-Identifier: Apache-2.0
//
// Where the parts of an awaited session run.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/system_executor.hpp>

#include <optional>
#include <utility>

namespace stepwell {

/// A class with functions, not an aggregate: it may be made inside an awaited expression.
///     async_options().steps_on(pool.get_executor())
class async_options {
public:
  using executor_type = boost::asio::any_io_executor;

  async_options() = default;

  /// Steps, and the hooks around them, run on `executor`, one at a time, and the one that awaits stays responsive. Unless
  /// said, they run on the executor of the one that awaits, and hold up what else it has to do.
  /// @lifetime Its context must outlive the session, or fail to run what it is given.
  async_options& steps_on(executor_type executor) {
    compute_ = std::move(executor);
    return *this;
  }
  /// Operations whose completion handler has no executor of its own, plain callbacks and futures, run on `executor`. Unless
  /// said, that is Asio's system executor, with threads of its own.
  async_options& runs_on(executor_type executor) {
    executor_ = std::move(executor);
    return *this;
  }

  /// Whether making the session ready may wait for another session, as a worker waits for its chief: then it is done on a
  /// thread of its own, else on one of a few that all sessions share. Unless said, creators of the user's may wait.
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
