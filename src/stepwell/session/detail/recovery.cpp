// SPDX-License-Identifier: Apache-2.0
#include "stepwell/session/detail/recovery.hpp"

#include "stepwell/base/detail/failure_text.hpp"
#include "stepwell/base/log.hpp"

#include <fmt/format.h>
#include <chrono>

namespace stepwell {

recovery::recovery(bool is_on, const retry_policy& policy, deferred_requests& control, coordinator& threads)
    : is_on_(is_on && policy.max_attempts > 0), policy_(policy), control_(control), threads_(threads) {
  check_retry_policy(policy);
}

std::exception_ptr recovery::root_of(const std::exception_ptr& failure) const {
  if (is_recoverable(failure)) { return failure; }
  const auto of_thread = threads_.failure();
  return is_recoverable(of_thread) ? of_thread : failure;
}

clock::time_point recovery::next(const std::exception_ptr& failure, std::int64_t last_step_done) {
  if (last_step_done > furthest_) {
    furthest_ = last_step_done;
    tries_ = 0;
  }
  if (tries_ >= policy_.max_attempts || (tries_ > 0 && control_.signals()->stop_requested())) {
    log_error(fmt::format("giving up after {} recoveries without a step between them: {}", tries_, detail::text_of(failure)));
    tries_ = 0;
    std::rethrow_exception(failure);
  }
  const auto wait = backoff_of(policy_, ++tries_, static_cast<std::uint64_t>(total_++));
  log_warning(fmt::format("recovery {} of at most {}, in {:.3f} s, after: {}", tries_, policy_.max_attempts,
                          std::chrono::duration<double>(wait).count(), detail::text_of(failure)));
  return control_.time()->now() + wait;
}

}  // namespace stepwell
