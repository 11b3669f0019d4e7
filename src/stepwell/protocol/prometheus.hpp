// SPDX-License-Identifier: Apache-2.0
//
// The metrics of sessions as text for Prometheus.
#pragma once

#include "stepwell/protocol/session_metrics.hpp"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stepwell {

/// The metrics of one of several sessions.
struct named_metrics {
  std::string session;  ///< The name of the session. Each session needs a different name.
  session_metrics metrics;
  std::vector<history_value> watched = {};  ///< Watched values of the session, see `monitored_session::watched`.
};

/// Returns the metrics of all `sessions` in the text format of Prometheus, for an HTTP server of the program: one line for each number,
/// with the label `session="NAME"` unless the name is empty. Prometheus can derive rates: `rate(stepwell_global_step[1m])` are steps per
/// second. Watched values have the label `name="NAME"`: `stepwell_watched{name="loss"} 0.25`. In names, U+FFFD replaces bytes that are not
/// UTF-8, and control characters are escaped: "\\x1b".
/// @errors `invalid_argument_error` if two names are equal. @threads Any.
[[nodiscard]] std::string prometheus_text(std::span<const named_metrics> sessions);
/// Like the other overload, for one session: `prometheus_text(session.metrics(), "root", session.watched())`.
/// @threads Any.
[[nodiscard]] std::string prometheus_text(const session_metrics& metrics, std::string_view session_name = {},
                                          std::vector<history_value> watched = {});

}  // namespace stepwell
