// SPDX-License-Identifier: Apache-2.0
#include "stepwell/base/cadence.hpp"

#include <limits>
#include <utility>

namespace stepwell {
namespace {

/// 100 years. A longer wait never ends in practice, and its end would overflow the clock's ticks.
constexpr std::chrono::duration<double> far = std::chrono::hours(24 * 365 * 100);

std::int64_t saturated_sum(std::int64_t step, std::int64_t period) noexcept {
  std::int64_t sum = 0;
  if (!__builtin_add_overflow(step, period, &sum)) { return sum; }
  return period > 0 ? std::numeric_limits<std::int64_t>::max() : std::numeric_limits<std::int64_t>::min();
}

}  // namespace

second_or_step_timer::second_or_step_timer(cadence period, std::shared_ptr<clock> source)
    : period_(period), source_(std::move(source)), next_step_(std::make_shared<std::atomic<std::int64_t>>(unset)) {
  if (period_.every_secs && period_.every_steps) {
    throw invalid_argument_error("can not provide both every_secs and every_steps; give one of them");
  }
  if (!period_.every_secs && !period_.every_steps) { throw invalid_argument_error("either every_secs or every_steps should be provided"); }
}

const second_or_step_timer::shared_step& second_or_step_timer::never_comes() {
  static const auto shared = std::make_shared<std::atomic<std::int64_t>>(never);
  return shared;
}

std::optional<elapsed_since_trigger> second_or_step_timer::update_last_triggered_step(std::int64_t step) {
  if (!source_) { return std::nullopt; }
  const auto now = source_->now();
  std::optional<elapsed_since_trigger> elapsed;
  if (last_step_ != unset) { elapsed = elapsed_since_trigger{now - last_time_, step - last_step_}; }
  last_step_ = step;
  last_time_ = now;
  if (period_.every_steps) {
    next_step_->store(saturated_sum(step, *period_.every_steps), std::memory_order_relaxed);
  } else {
    wake_after(*period_.every_secs);
  }
  return elapsed;
}

void second_or_step_timer::wake_after(std::chrono::duration<double> wait) {
  alarm_.cancel();
  const bool at_once = wait.count() <= 0;
  next_step_->store(at_once ? unset : never, std::memory_order_relaxed);
  if (at_once || !(wait < far)) { return; }
  const auto when = last_time_ + std::chrono::ceil<clock::duration>(wait);
  alarm_ = alarm(source_, when, [next = next_step_] { next->store(unset, std::memory_order_relaxed); });
}

std::optional<std::int64_t> second_or_step_timer::last_triggered_step() const noexcept {
  return last_step_ == unset ? std::nullopt : std::optional(last_step_);
}

void second_or_step_timer::reset() {
  if (!source_) { return; }
  alarm_.cancel();
  last_step_ = unset;
  next_step_->store(unset, std::memory_order_relaxed);
}

}  // namespace stepwell
