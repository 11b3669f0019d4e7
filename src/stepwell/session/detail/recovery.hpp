// SPDX-License-Identifier: Apache-2.0
//
// The decision after a failure: whether to recover, when, and when to give up.
// @see contract REC, D-2, D-12
#pragma once

#include "stepwell/base/clock.hpp"
#include "stepwell/protocol/detail/boundary_requests.hpp"
#include "stepwell/session/training_options.hpp"

#include <atomic>
#include <cstdint>
#include <exception>

namespace stepwell {

/// The counts of the recoveries of one session, and the schedule of its attempts. Independent of the types of model and hooks.
/// @threads The session's thread, except `is_overcome`.
class recovery {
public:
  /// @errors `invalid_argument_error` for an invalid policy.
  recovery(const retry_policy& policy, boundary_requests& requests);

  /// Returns true if recovery is on and `failure` is transient. @threads Any.
  [[nodiscard]] bool is_overcome(const std::exception_ptr& failure) const noexcept { return is_on() && is_recoverable(failure); }
  [[nodiscard]] bool is_on() const noexcept { return policy_.max_attempts > 0; }

  /// Plans one more attempt after `failure`, and returns the time at which it is due. `last_step_done` is the last step done by this
  /// session. Only a step beyond all steps done before the previous failure is progress, because earlier steps are repeated after each
  /// recovery. If `begins_at_once` is true, the first attempt without progress is due now.
  /// @errors `failure` itself, after `max_attempts` attempts without progress, or after the first attempt without progress if a stop is
  /// requested.
  clock::time_point next(const std::exception_ptr& failure, std::int64_t last_step_done, bool begins_at_once = false);

  /// Returns the number of attempts without progress between them.
  [[nodiscard]] int tries() const noexcept { return tries_; }
  /// Returns the number of recoveries of the whole session.
  [[nodiscard]] std::int64_t total() const noexcept { return total_; }

private:
  retry_policy policy_;
  boundary_requests& requests_;
  int tries_ = 0;
  std::int64_t furthest_ = -1;           // the highest step done at a failure so far
  std::atomic<std::int64_t> total_ = 0;  // read by any thread
};

}  // namespace stepwell
