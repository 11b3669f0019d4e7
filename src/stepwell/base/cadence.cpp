// SPDX-License-Identifier: Apache-2.0
#include "stepwell/base/cadence.hpp"

#include "stepwell/base/log.hpp"

#include <fmt/format.h>

namespace stepwell {
namespace {

template<class Number>
void throw_if_negative(std::string_view option, Number value) {
  if (!(value >= 0)) { throw invalid_argument_error(fmt::format("{} is {}; it cannot be negative, give 0 or more", option, value)); }
}

std::int64_t saturated_sum(std::int64_t step, std::int64_t period) noexcept {
  std::int64_t sum = 0;
  if (!__builtin_add_overflow(step, period, &sum)) { return sum; }
  return period > 0 ? std::numeric_limits<std::int64_t>::max() : std::numeric_limits<std::int64_t>::min();
}

}  // namespace

void detail::refuse_negative(std::string_view option, std::int64_t value) { throw_if_negative(option, value); }
void detail::refuse_negative(std::string_view option, int value) { throw_if_negative(option, value); }
void detail::refuse_negative(std::string_view option, double value) { throw_if_negative(option, value); }
void detail::refuse_negative(std::string_view option, seconds_value value) { throw_if_negative(option, value.count()); }

clock::duration detail::as_duration(seconds_value wait) noexcept {
  constexpr std::chrono::duration<double> far = std::chrono::hours(24 * 365 * 100);
  if (!(wait.duration() < far)) { return clock::duration::max(); }
  return std::chrono::ceil<clock::duration>(std::max(wait.duration(), std::chrono::duration<double>::zero()));
}

clock::time_point detail::time_after(clock::time_point start, seconds_value wait) noexcept {
  const auto length = as_duration(wait);
  return length == clock::duration::max() ? clock::time_point::max() : start + length;
}

std::optional<cadence> choose_cadence(const cadence_setting& said, std::optional<cadence> otherwise) {
  detail::refuse_negative(said.steps_name, said.steps);
  detail::refuse_negative(said.secs_name, said.secs);
  if (said.steps.is_default() && said.secs.is_default()) { return otherwise; }
  const auto steps = said.steps.enabled();
  const auto secs = said.secs.enabled();
  if (steps && secs) {
    log_warning(fmt::format("both {} and {} are given; {} ({} s) is used", said.secs_name, said.steps_name, said.secs_name, secs->count()));
  }
  if (secs) { return cadence{.every_secs = secs->duration()}; }
  if (steps) { return cadence{.every_steps = steps}; }
  return std::nullopt;
}

cadence require_cadence(std::string_view owner, const cadence_setting& said, std::optional<cadence> otherwise) {
  if (const auto chosen = choose_cadence(said, otherwise)) { return *chosen; }
  throw invalid_argument_error(fmt::format("{}: one of {} and {} must be above zero", owner, said.steps_name, said.secs_name));
}

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

void second_or_step_timer::wake_after(seconds_value wait) {
  alarm_.cancel();
  const bool at_once = wait.count() <= 0;
  next_step_->store(at_once ? unset : never, std::memory_order_relaxed);
  const auto when = detail::time_after(last_time_, wait);
  if (at_once || when == clock::time_point::max()) { return; }
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
