// SPDX-License-Identifier: Apache-2.0
#include "stepwell/protocol/prometheus.hpp"

#include "stepwell/base/detail/default_float_mode.hpp"
#include "stepwell/base/detail/printable.hpp"
#include "stepwell/base/error.hpp"
#include "stepwell/format/detail/coding.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <utility>

namespace stepwell {
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
  for (const char letter : detail::printable_lines(format::to_utf8(text))) {
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
  void add_value(std::string_view name, const std::string& session, double value, std::string_view key = {}, const std::string& text = {}) {
    std::string labels;
    if (!session.empty()) { labels = "session=\"" + escaped_label(session) + "\""; }
    if (!key.empty()) { labels += fmt::format("{}{}=\"{}\"", labels.empty() ? "" : ",", key, escaped_label(text)); }
    const detail::default_float_mode mode;
    const auto number = std::isnan(value) ? "NaN" : std::isinf(value) ? (value > 0 ? "+Inf" : "-Inf") : fmt::format("{}", value);
    text_ += labels.empty() ? fmt::format("stepwell_{} {}\n", name, number) : fmt::format("stepwell_{}{{{}}} {}\n", name, labels, number);
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
      out.add_value("queue_items", of.session, static_cast<double>(depth), "queue", queue);
    }
  }
  const auto has_watched = [](const named_metrics& of) { return !of.watched.empty(); };
  if (std::ranges::any_of(sessions, has_watched)) { out.add_heading("watched", "gauge", "The newest value that a hook watches."); }
  for (const auto& of : sessions) {
    std::set<std::string> seen;
    for (const auto& [name, value, step] : of.watched) {
      if (seen.insert(escaped_label(name)).second) { out.add_value("watched", of.session, value, "name", name); }
    }
  }
  return out.take();
}

std::string prometheus_text(const session_metrics& metrics, std::string_view session_name, std::vector<history_value> watched) {
  return prometheus_text(std::array{named_metrics{std::string(session_name), metrics, std::move(watched)}});
}

}  // namespace stepwell
