// SPDX-License-Identifier: Apache-2.0
//
// How often, and after how long, a session tries again after a failure that may pass (D-2).
#pragma once

#include "stepwell/base/clock.hpp"
#include "stepwell/base/setting.hpp"

#include <cstdint>
#include <exception>

namespace stepwell {

/// Exponential back-off with jitter. TensorFlow tries again at once and for ever.
struct retry_policy {
  /// Recoveries without progress between them, which is a step beyond all done before; after the last one the last error is
  /// thrown. 0: none.
  int max_attempts = 10;
  /// The wait before the first recovery; each further one waits `multiplier` times as long, up to `max_backoff`.
  seconds_value initial_backoff = 0.1;
  seconds_value max_backoff = 30;
  double multiplier = 2;
  /// Every wait is shortened by a random share of up to this much, so that sessions do not come back all at once.
  double jitter = 0.5;
  /// Of the random shares: sessions with different seeds spread out.
  std::uint64_t seed = 0;
};

/// @errors `invalid_argument_error` naming what makes no sense: a negative number, a jitter above one.
void check_retry_policy(const retry_policy& policy);

/// How long to wait before recovery number `attempt`, from 1. `draw` tells draws of one session apart.
[[nodiscard]] clock::duration backoff_of(const retry_policy& policy, int attempt, std::uint64_t draw);

/// Whether a failure is one that a recovery may overcome: `aborted_error` or `unavailable_error` (contract REC-1).
[[nodiscard]] bool is_recoverable(const std::exception_ptr& failure) noexcept;

}  // namespace stepwell
