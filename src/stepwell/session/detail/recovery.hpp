// SPDX-License-Identifier: Apache-2.0
//
// What follows a failure: try again, when, and when no more (contract REC, D-2, D-12).
#pragma once

#include "stepwell/base/clock.hpp"
#include "stepwell/hook/detail/deferred_requests.hpp"
#include "stepwell/session/retry_policy.hpp"
#include "stepwell/threads/coordinator.hpp"

#include <cstdint>
#include <exception>

namespace stepwell {

/// Counts the recoveries of one session and says how each goes. Knows neither model nor hooks.
/// @threads The session's, but for `is_overcome`.
class recovery {
public:
  /// @errors `invalid_argument_error` for a policy that makes no sense.
  recovery(bool is_on, const retry_policy& policy, deferred_requests& control, coordinator& threads);

  /// Whether a recovery may overcome the failure of a thread. @threads Any.
  [[nodiscard]] bool is_overcome(const std::exception_ptr& failure) const noexcept { return is_on_ && is_recoverable(failure); }
  /// The failure to act on when a run failed with `failure`: that of a thread, where it is the one that can be overcome
  /// (contract WRAP-5).
  [[nodiscard]] std::exception_ptr root_of(const std::exception_ptr& failure) const;
  [[nodiscard]] bool is_on() const noexcept { return is_on_; }

  /// One more try after `failure`; when it is due. `last_step_done` is by this session: only a step beyond all it had done at
  /// the failure before is progress, for those up to there are done again after each recovery.
  /// @errors `failure` itself, when there have been `max_attempts` without progress, or while a stop is asked for.
  clock::time_point next(const std::exception_ptr& failure, std::int64_t last_step_done);

  /// Tries without progress between them.
  [[nodiscard]] int tries() const noexcept { return tries_; }
  /// Of the whole session.
  [[nodiscard]] std::int64_t total() const noexcept { return total_; }

private:
  bool is_on_;
  retry_policy policy_;
  deferred_requests& control_;
  coordinator& threads_;
  int tries_ = 0;
  std::int64_t furthest_ = -1;  // step done when it failed last
  std::int64_t total_ = 0;
};

}  // namespace stepwell
