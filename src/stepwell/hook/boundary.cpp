// SPDX-License-Identifier: Apache-2.0
#include "stepwell/hook/boundary.hpp"

#include "stepwell/base/error.hpp"
#include "stepwell/format/detail/coding.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <set>
#include <string>

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

namespace {

/// One number of `session_metrics` for Prometheus.
struct exposed_metric {
  std::string_view name;
  std::string_view type;
  std::string_view help;
  double (*value)(const session_metrics&);
};

template<auto Member>
double number(const session_metrics& of) {
  if constexpr (requires { (of.*Member).count(); }) {
    return (of.*Member).count();
  } else {
    return static_cast<double>(of.*Member);
  }
}

constexpr std::array exposed_metrics = {
    exposed_metric{"global_step", "gauge", "The step that the session has reached.", &number<&session_metrics::global_step>},
    exposed_metric{"recoveries_total", "counter", "Attempts to recover, successful or not.", &number<&session_metrics::recoveries>},
    exposed_metric{"creations_total", "counter", "Creations of the session.", &number<&session_metrics::creations>},
    exposed_metric{"rollbacks_total", "counter", "Rollbacks requested by hooks.", &number<&session_metrics::rollbacks>},
    exposed_metric{"saves_total", "counter", "Durable checkpoints.", &number<&session_metrics::saves>},
    exposed_metric{"saves_failed_total", "counter", "Saves that failed permanently.", &number<&session_metrics::saves_failed>},
    exposed_metric{"saves_skipped_total", "counter", "Saves that were due but skipped.", &number<&session_metrics::saves_skipped>},
    exposed_metric{"saves_postponed_total", "counter", "Saves that were made later than due.", &number<&session_metrics::saves_postponed>},
    exposed_metric{"saves_waited_total", "counter", "Saves for which a step had to wait.", &number<&session_metrics::saves_waited>},
    exposed_metric{"save_wait_seconds_total", "counter", "Total time of steps that waited for earlier saves.",
                   &number<&session_metrics::total_save_wait>},
    exposed_metric{"saved_bytes_total", "counter", "Total size of all durable checkpoints.", &number<&session_metrics::bytes_saved>},
    exposed_metric{"save_seconds_total", "counter", "Total duration of all saves.", &number<&session_metrics::total_save_time>},
    exposed_metric{"last_save_seconds", "gauge", "Duration of the last save.", &number<&session_metrics::last_save_time>},
    exposed_metric{"snapshot_bytes", "gauge", "Bytes held for snapshots.", &number<&session_metrics::snapshot_bytes>},
};

std::string escaped_label(std::string_view text) {
  std::string made;
  for (const char letter : format::to_utf8(text)) {
    if (letter == '\\' || letter == '"') { made += '\\'; }
    made += letter == '\n' ? std::string("\\n") : std::string(1, letter);
  }
  return made;
}

/// Text in the format of Prometheus: the heading of a metric, then its values.
class exposition {
public:
  void add_heading(std::string_view name, std::string_view type, std::string_view help) {
    text_ += fmt::format("# HELP stepwell_{0} {1}\n# TYPE stepwell_{0} {2}\n", name, help, type);
  }
  void add_value(std::string_view name, const std::string& session, double value, const std::string& queue = {}) {
    std::string labels;
    if (!session.empty()) { labels = "session=\"" + escaped_label(session) + "\""; }
    if (!queue.empty()) { labels.append(labels.empty() ? "" : ",").append("queue=\"").append(escaped_label(queue)).append("\""); }
    text_ += labels.empty() ? fmt::format("stepwell_{} {}\n", name, value) : fmt::format("stepwell_{}{{{}}} {}\n", name, labels, value);
  }
  [[nodiscard]] std::string take() { return std::move(text_); }

private:
  std::string text_;
};

}  // namespace

std::string prometheus_text(std::span<const named_metrics> sessions) {
  std::set<std::string> names;
  for (const auto& of : sessions) {
    if (names.insert(escaped_label(of.session)).second) { continue; }
    throw invalid_argument_error("two sessions have the name \"" + of.session + "\"; Prometheus needs another name for each session");
  }
  exposition out;
  for (const auto& one : exposed_metrics) {
    out.add_heading(one.name, one.type, one.help);
    for (const auto& of : sessions) { out.add_value(one.name, of.session, one.value(of.metrics)); }
  }
  const auto has_queues = [](const named_metrics& of) { return !of.metrics.queue_depths.empty(); };
  if (std::ranges::any_of(sessions, has_queues)) { out.add_heading("queue_items", "gauge", "Waiting items of a queue."); }
  for (const auto& of : sessions) {
    for (const auto& [queue, depth] : of.metrics.queue_depths) {
      out.add_value("queue_items", of.session, static_cast<double>(depth), queue);
    }
  }
  return out.take();
}

std::string prometheus_text(const session_metrics& metrics, std::string_view session_name) {
  return prometheus_text(std::array{named_metrics{std::string(session_name), metrics}});
}

boundary_work::~boundary_work() = default;  // defined here, so that the virtual functions are compiled once

}  // namespace stepwell
