// SPDX-License-Identifier: Apache-2.0
#include "stepwell/session/detail/recovery.hpp"

#include "stepwell/base/detail/failure_kind.hpp"
#include "stepwell/base/detail/failure_text.hpp"
#include "stepwell/base/error.hpp"
#include "stepwell/base/log.hpp"
#include "stepwell/base/random.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

namespace stepwell {
namespace {
constexpr std::uint64_t backoff_stream = 0x6261636b6f6666;  // different from the streams of models and sources
}  // namespace

void check_retry_policy(const retry_policy& policy) {
  const auto refuse = [](std::string_view name, auto value) {
    throw invalid_argument_error(
        fmt::format("retry_policy: {} is {}; waits and counts cannot be negative, a multiplier is at "
                    "least 1 and a jitter at most 1",
                    name, value));
  };
  if (policy.max_attempts < 0) { refuse("max_attempts", policy.max_attempts); }
  if (!(policy.initial_backoff.count() >= 0)) { refuse("initial_backoff", policy.initial_backoff.count()); }
  if (!(policy.max_backoff.count() >= 0)) { refuse("max_backoff", policy.max_backoff.count()); }
  if (!(policy.multiplier >= 1)) { refuse("multiplier", policy.multiplier); }
  if (!(policy.jitter >= 0 && policy.jitter <= 1)) { refuse("jitter", policy.jitter); }
}

clock::duration backoff_of(const retry_policy& policy, int attempt, std::uint64_t draw) {
  constexpr double longest = 24.0 * 3600 * 365;  // one year in seconds: any clock can represent it
  const double full =
      std::min({policy.initial_backoff.count() * std::pow(policy.multiplier, attempt - 1), policy.max_backoff.count(), longest});
  const double share = static_cast<double>(random_bits(policy.seed, backoff_stream, draw) >> 11) * 0x1.0p-53;
  return std::chrono::duration_cast<clock::duration>(std::chrono::duration<double>(full * (1 - policy.jitter * share)));
}

bool is_recoverable(const std::exception_ptr& failure) noexcept { return detail::is_transient(detail::kind_of(failure)); }

recovery::recovery(const retry_policy& policy, boundary_requests& requests) : policy_(policy), requests_(requests) {
  check_retry_policy(policy);
}

clock::time_point recovery::next(const std::exception_ptr& failure, std::int64_t last_step_done, bool begins_at_once) {
  if (last_step_done > furthest_) {
    furthest_ = last_step_done;
    tries_ = 0;
  }
  if (tries_ >= policy_.max_attempts || (tries_ > 0 && requests_.signals()->stop_requested())) {
    log_error(fmt::format("giving up after {} recoveries without a step between them: {}", tries_, detail::text_of(failure)));
    tries_ = 0;
    std::rethrow_exception(failure);
  }
  const auto backoff = backoff_of(policy_, ++tries_, static_cast<std::uint64_t>(total_++));
  const auto wait = begins_at_once && tries_ == 1 ? clock::duration::zero() : backoff;
  log_warning(fmt::format("recovery {} of at most {}, in {:.3f} s, after: {}", tries_, policy_.max_attempts,
                          std::chrono::duration<double>(wait).count(), detail::text_of(failure)));
  return requests_.facts().time->now() + wait;
}

}  // namespace stepwell
