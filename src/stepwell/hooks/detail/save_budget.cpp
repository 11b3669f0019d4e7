// SPDX-License-Identifier: Apache-2.0
#include "stepwell/hooks/detail/save_budget.hpp"

#include "stepwell/base/error.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <utility>

namespace stepwell::detail {
namespace {

using seconds = std::chrono::duration<double>;

void add_to_mean(std::optional<seconds>& mean, seconds value) { mean = mean ? (*mean + value) / 2 : value; }

/// Returns true if the overhead is above zero, and therefore selects the interval.
bool uses_budget(const saves_setting& said) {
  const auto& [others, name, overhead, bounds_name, bounds] = said;
  if (overhead.given() && !(*overhead.given() >= 0 && *overhead.given() < 1)) {
    throw invalid_argument_error(
        fmt::format("{} is {}; it must be a share of the time, from 0 (off) to less than 1, e.g. 0.02", name, *overhead.given()));
  }
  check_bounds(bounds);
  if (overhead.is_default() && bounds != interval_bounds()) {
    throw invalid_argument_error(fmt::format("{} is given, but {} is not; without it, the option has no effect", bounds_name, name));
  }
  if (!overhead.enabled()) { return false; }
  const auto refuse_both = [&](std::string_view other) {
    throw invalid_argument_error(fmt::format("both {} and {} are given; give one of them", said.overhead_name, other));
  };
  if (others.secs.enabled()) { refuse_both(others.secs_name); }
  if (others.steps.enabled()) { refuse_both(others.steps_name); }
  return true;
}

}  // namespace

void check_bounds(const interval_bounds& bounds) {
  refuse_negative("min_interval", bounds.min_interval);
  if (bounds.min_interval <= bounds.max_interval) { return; }
  throw invalid_argument_error(fmt::format("min_interval is {} s and max_interval is {} s; min_interval cannot be above max_interval",
                                           bounds.min_interval.count(), bounds.max_interval.count()));
}

std::optional<save_schedule> choose_saves(const saves_setting& said, std::optional<cadence> otherwise) {
  const bool has_budget = uses_budget(said);
  const auto period = choose_cadence(said.periods, said.overhead.is_default() ? otherwise : std::nullopt);
  if (has_budget) { return save_schedule{.period = {}, .share = said.overhead.given(), .bounds = said.bounds}; }
  if (!period) { return std::nullopt; }
  return save_schedule{.period = *period, .share = std::nullopt, .bounds = said.bounds};
}

save_budget::save_budget(double share, const interval_bounds& bounds, std::string directory)
    : share_(share), bounds_(bounds), directory_(std::move(directory)) {}

void save_budget::start(std::shared_ptr<clock> time, std::string session) {
  clock_ = std::move(time);
  session_ = std::move(session);
  requested_.reset();
  ended_.reset();
}

void save_budget::begin(std::int64_t step) {
  const auto now = clock_->now();
  if (ended_ && step > ended_->step) { step_ = seconds(now - ended_->time) / (step - ended_->step); }
  requested_ = moment{now, step};
  accepted_.reset();
  ended_.reset();
}

void save_budget::accept() {
  if (clock_) { accepted_ = clock_->now(); }
}

clock::duration save_budget::end(std::int64_t step) {
  const auto now = clock_->now();
  measure({now, step});
  log_interval(now);
  const auto requested = std::exchange(requested_, std::nullopt)->time;
  ended_ = moment{now, step};
  // The next measurement compares with steps without a save, for at least as long as this save took.
  const auto earliest = now + (now - accepted_.value_or(now));
  const auto due = std::min(std::max(time_after(requested, interval()), earliest), time_after(requested, bounds_.max_interval));
  return std::max(due - now, clock::duration::zero());
}

void save_budget::measure(const moment& ended) {
  if (!accepted_) { return; }  // the request was dropped
  add_to_mean(stall_, *accepted_ - requested_->time);
  if (step_) { add_to_mean(slowed_, ended.time - *accepted_ - (ended.step - requested_->step) * *step_); }
}

std::chrono::duration<double> save_budget::interval() const noexcept {
  const auto cost = stall_.value_or(seconds::zero()) + std::max(slowed_.value_or(seconds::zero()), seconds::zero());
  return std::clamp(cost / share_, bounds_.min_interval.duration(), bounds_.max_interval.duration());
}

void save_budget::log_interval(clock::time_point now) {
  const auto chosen = interval();
  if (logged_ && (!log_.is_due(now) || std::max(chosen / *logged_, *logged_ / chosen) <= 1.2)) { return; }
  if (!stall_) { return; }
  logged_ = chosen;
  const auto slowed = slowed_ ? fmt::format("slows its steps by {:.3g} s in total", std::max(slowed_->count(), 0.0))
                              : std::string("slows its steps by a time that is not measured yet");
  log_.add(
      session_, now,
      fmt::format("{}: a checkpoint is saved every {:.3g} s, for a share of {:.3g} of the time; a save stops training for {:.3g} s and {}",
                  directory_, chosen.count(), share_, stall_->count(), slowed));
}

}  // namespace stepwell::detail
