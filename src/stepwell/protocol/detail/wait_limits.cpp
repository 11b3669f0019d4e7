// SPDX-License-Identifier: Apache-2.0
#include "stepwell/protocol/detail/wait_limits.hpp"

#include "stepwell/base/detail/locks.hpp"
#include "stepwell/base/log.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <chrono>
#include <cstdint>

namespace stepwell {
namespace {

/// Returns the measurements of all saves so far, as input of a plan.
preemption_facts facts_of(const session_metrics& known) {
  return {.under_way = known.under_way,
          .measured_bytes = static_cast<std::uint64_t>(known.bytes_saved),
          .measured_time = known.total_save_time};
}

/// Returns the mean size of all saves so far.
std::uint64_t mean_size(const session_metrics& known) {
  return known.saves > 0 ? static_cast<std::uint64_t>(known.bytes_saved / known.saves) : 0;
}

}  // namespace

deadline wait_limits::after(clock::duration grace) const {
  const auto now = time_.now();
  return grace < clock::time_point::max() - now ? deadline(time_, now + grace) : deadline::never(time_);
}

deadline wait_limits::within_process(const deadline& until) const {
  const auto end = signals_.end_of_process();
  if (!end) { return until; }
  const auto left = deadline(time_, *end).remaining();
  return detail::earlier_of(after(left > clock::duration::zero() ? left : *signals_.grace_of_process()), until);
}

/// Returns the part of `grace` that is not reserved for the last save.
clock::duration wait_limits::without_last_save(clock::duration grace) const {
  if (grace == clock::duration::max()) { return grace; }
  session_metrics known;
  works_.report(known);
  auto facts = facts_of(known);
  facts.state_bytes = mean_size(known);
  const auto expected = 2 * plan_preemption(facts).for_all.value_or(std::chrono::duration<double>::zero());
  if (expected >= grace) { return clock::duration::zero(); }
  return grace - std::max(grace / 4, std::chrono::duration_cast<clock::duration>(expected));
}

void wait_limits::begin_close(const deadline& until) {
  close_waits_ = after(without_last_save(until.remaining()));
  is_known_at_close_ = signals_.process_ends().has_value();
}

deadline wait_limits::within_close(const deadline& until) const {
  const auto end = signals_.end_of_process();
  if (!close_waits_ || is_known_at_close_ || !end) { return until; }
  return detail::earlier_of(deadline(time_, *end), until);
}

deadline wait_limits::end_of_waits() const {
  auto end = deadline::never(time_);
  if (close_waits_) {
    end = *close_waits_;
  } else if (signals_.stop_requested()) {
    end = after(without_last_save(stop_grace_));
  }
  if (const auto of_process = signals_.end_of_process()) {
    const auto grace = *signals_.grace_of_process();
    end = detail::earlier_of(deadline(time_, *of_process - (grace - without_last_save(grace))), end);
  }
  return end;
}

bool wait_limits::is_worth_saving(const boundary_state& state) {
  const auto end = signals_.end_of_process();
  if (!end) { return true; }
  session_metrics known;
  works_.report(known);
  auto facts = facts_of(known);
  facts.left = deadline(time_, *end).remaining();
  for (const auto& variable : state.variables) { facts.state_bytes += variable.size_bytes(); }
  facts.state_bytes = std::max(facts.state_bytes, mean_size(known));  // the lengths of strings are known only from earlier saves
  const auto plan = plan_preemption(facts);
  {
    const detail::mutex_lock lock(mutex_);
    plan_ = plan;
  }
  const auto text = fmt::format("step {}: {}", state.global_step, plan.to_string());
  signals_.note_plan(text);
  const bool is_worth = plan.choice == preemption_choice::save;
  log(is_worth ? log_level::info : log_level::warning, "the process is about to end; " + text);
  return is_worth;
}

std::optional<preemption_plan> wait_limits::plan() const {
  const detail::mutex_lock lock(mutex_);
  return plan_;
}

}  // namespace stepwell
