// SPDX-License-Identifier: Apache-2.0
#include "stepwell/protocol/preemption_plan.hpp"

#include <fmt/format.h>
#include <algorithm>

namespace stepwell {
namespace {

using seconds = std::chrono::duration<double>;

constexpr double margin = 1.25;  // write rates vary

/// Returns the write rate in bytes per second; empty if no save was measured.
std::optional<double> rate_of(const preemption_facts& known) noexcept {
  if (known.measured_bytes == 0 || !(known.measured_time.count() > 0)) { return std::nullopt; }
  const double before = static_cast<double>(known.measured_bytes) / known.measured_time.count();
  const auto& now = known.under_way;
  if (now.writing_bytes == 0 || !(now.writing_for.count() > 0)) { return before; }
  return std::min(before, static_cast<double>(now.writing_bytes) / now.writing_for.count());
}

/// Returns the time that the saves in flight still need.
seconds rest_of_backlog(const save_backlog& backlog, double rate) noexcept {
  const seconds writing(static_cast<double>(backlog.writing_bytes) / rate);
  const seconds waiting(static_cast<double>(backlog.waiting_bytes) / rate);
  return std::max(writing - backlog.writing_for, seconds::zero()) + waiting;
}

}  // namespace

preemption_plan plan_preemption(const preemption_facts& known) noexcept {
  preemption_plan plan{.left = known.left};
  const auto rate = rate_of(known);
  if (!rate) { return plan; }
  plan.for_backlog = margin * rest_of_backlog(known.under_way, *rate);
  plan.for_all = *plan.for_backlog + seconds(margin * static_cast<double>(known.state_bytes) / *rate);
  if (*plan.for_all <= known.left || !(known.left > seconds::zero())) {
    plan.choice = preemption_choice::save;
  } else if (!known.under_way.empty() && *plan.for_backlog <= known.left) {
    plan.choice = preemption_choice::finish;
  } else {
    plan.choice = preemption_choice::leave;
  }
  return plan;
}

std::string preemption_plan::to_string() const {
  const auto time = for_all ? fmt::format("{:.3g} s expected, {:.3g} s left", for_all->count(), left.count())
                            : fmt::format("no save was measured yet, {:.3g} s left", left.count());
  switch (choice) {
    case preemption_choice::save: return fmt::format("the state is saved: {}", time);
    case preemption_choice::finish:
      return fmt::format("no new save is started: {}; saves under way are finished, {:.3g} s expected", time, for_backlog->count());
    case preemption_choice::leave: break;
  }
  if (for_backlog && for_backlog->count() > 0) {
    return fmt::format("no new save is started: {}; saves under way are not expected to finish in time", time);
  }
  return fmt::format("no new save is started: {}", time);
}

}  // namespace stepwell
