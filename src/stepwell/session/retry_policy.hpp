// SPDX-License-Identifier: Apache-2.0
//
// The retry policy of a session for transient failures: the number of attempts and the waits between them.
// @see D-2
#pragma once

#include "stepwell/base/clock.hpp"
#include "stepwell/base/setting.hpp"

#include <cstdint>
#include <exception>

namespace stepwell {

/// Exponential backoff with jitter. TensorFlow, in contrast, retries at once and without a limit.
struct retry_policy {
  /// Maximum number of recoveries without progress between them. A step beyond all steps done before is progress. If the last recovery does
  /// not help, its failure is thrown. 0: no recovery.
  int max_attempts = 10;
  /// The wait before the first recovery. Each further wait is `multiplier` times as long, up to `max_backoff`.
  seconds_value initial_backoff = 0.1;
  seconds_value max_backoff = 30;
  double multiplier = 2;
  /// Maximum fraction by which each wait is shortened at random, so that several sessions do not retry at the same time.
  double jitter = 0.5;
  /// Seed of the random fractions. Sessions with different seeds have different waits.
  std::uint64_t seed = 0;
};

/// Checks `policy`.
/// @errors `invalid_argument_error` that names the invalid member: a negative number, a multiplier below one, or a jitter above one.
void check_retry_policy(const retry_policy& policy);

/// Returns the wait before recovery number `attempt`, which starts at 1. `draw` selects the random fraction; use another value for each
/// wait of a session.
[[nodiscard]] clock::duration backoff_of(const retry_policy& policy, int attempt, std::uint64_t draw);

/// Returns true if `failure` is transient, so that a recovery may overcome it: an `aborted_error` or `unavailable_error`.
/// @see contract REC-1
[[nodiscard]] bool is_recoverable(const std::exception_ptr& failure) noexcept;

}  // namespace stepwell
