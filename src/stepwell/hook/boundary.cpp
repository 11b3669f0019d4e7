// SPDX-License-Identifier: Apache-2.0
#include "stepwell/hook/boundary.hpp"

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

void recovery_copy::keep(snapshot taken, bool is_initial) {
  const std::lock_guard lock(mutex_);
  kept_.reset();
  taken.leave_pool();  // with the mutex held, so that a save that takes the free buffer drops this copy first
  kept_ = std::move(taken);
  is_initial_ = is_initial;
}

void recovery_copy::drop() noexcept {
  const std::lock_guard lock(mutex_);
  kept_.reset();
}

bool recovery_copy::restore(bool is_initial, function_ref<void(const snapshot&)> restore) const {
  const std::lock_guard lock(mutex_);
  if (!kept_ || is_initial_ != is_initial) { return false; }
  restore(*kept_);
  return true;
}

std::size_t recovery_copy::held_bytes() const noexcept {
  const std::lock_guard lock(mutex_);
  return kept_ ? kept_->held_bytes() : 0;
}

preemption_plan plan_preemption(const preemption_facts& known) noexcept {
  preemption_plan plan{.left = known.left};
  const auto rate = rate_of(known);
  if (!rate) {
    plan.choice = known.left > seconds::zero() ? preemption_choice::save : preemption_choice::leave;
    return plan;
  }
  plan.for_backlog = margin * rest_of_backlog(known.under_way, *rate);
  plan.for_all = *plan.for_backlog + seconds(margin * static_cast<double>(known.state_bytes) / *rate);
  if (*plan.for_all <= known.left) {
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

namespace {

/// Writes metrics in the text format of Prometheus.
class exposition {
public:
  explicit exposition(std::string_view session) {
    if (session.empty()) { return; }
    session_ = "session=\"" + escaped(session) + "\"";
  }

  void add(std::string_view name, std::string_view type, std::string_view help, double value) {
    add_heading(name, type, help);
    add_value(name, session_, value);
  }
  void add_heading(std::string_view name, std::string_view type, std::string_view help) {
    text_ += fmt::format("# HELP stepwell_{0} {1}\n# TYPE stepwell_{0} {2}\n", name, help, type);
  }
  void add_queue(const std::string& queue, std::size_t depth) {
    const auto label = "queue=\"" + escaped(queue) + "\"";
    add_value("queue_items", session_.empty() ? label : session_ + "," + label, static_cast<double>(depth));
  }
  [[nodiscard]] std::string take() { return std::move(text_); }

private:
  static std::string escaped(std::string_view text) {
    std::string made;
    for (const char letter : text) {
      if (letter == '\\' || letter == '"') { made += '\\'; }
      made += letter == '\n' ? std::string("\\n") : std::string(1, letter);
    }
    return made;
  }
  void add_value(std::string_view name, const std::string& labels, double value) {
    text_ += labels.empty() ? fmt::format("stepwell_{} {}\n", name, value) : fmt::format("stepwell_{}{{{}}} {}\n", name, labels, value);
  }

  std::string session_;
  std::string text_;
};

}  // namespace

std::string prometheus_text(const session_metrics& metrics, std::string_view session_name) {
  exposition out(session_name);
  const auto count = [&](std::string_view name, std::string_view help, auto value) {
    out.add(name, "counter", help, static_cast<double>(value));
  };
  const auto gauge = [&](std::string_view name, std::string_view help, auto value) {
    out.add(name, "gauge", help, static_cast<double>(value));
  };
  gauge("global_step", "The last step done.", metrics.global_step);
  count("recoveries_total", "Attempts to recover, successful or not.", metrics.recoveries);
  count("creations_total", "Creations of the session.", metrics.creations);
  count("rollbacks_total", "Rollbacks requested by hooks.", metrics.rollbacks);
  count("saves_total", "Durable checkpoints.", metrics.saves);
  count("saves_failed_total", "Saves that failed permanently.", metrics.saves_failed);
  count("saves_skipped_total", "Saves that were due but skipped.", metrics.saves_skipped);
  count("saves_postponed_total", "Saves that were made later than due.", metrics.saves_postponed);
  count("saved_bytes_total", "Total size of all durable checkpoints.", metrics.bytes_saved);
  count("save_seconds_total", "Total duration of all saves.", metrics.total_save_time.count());
  gauge("last_save_seconds", "Duration of the last save.", metrics.last_save_time.count());
  gauge("snapshot_bytes", "Bytes held for snapshots.", metrics.snapshot_bytes);
  if (!metrics.queue_depths.empty()) {
    out.add_heading("queue_items", "gauge", "Waiting items of a queue.");
    for (const auto& [queue, depth] : metrics.queue_depths) { out.add_queue(queue, depth); }
  }
  return out.take();
}

boundary_work::~boundary_work() = default;  // defined here, so that the virtual functions are compiled once

}  // namespace stepwell
