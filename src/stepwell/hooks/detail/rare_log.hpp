// SPDX-License-Identifier: Apache-2.0
//
// A limit for the log lines of a hook that would otherwise log too often.
#pragma once

#include "stepwell/base/cadence.hpp"
#include "stepwell/base/clock.hpp"
#include "stepwell/base/log.hpp"

#include <optional>
#include <string>
#include <utility>

namespace stepwell::detail {

/// Logs a line unless another one was logged a short time ago.
/// @threads The session's thread.
class rare_log {
public:
  explicit rare_log(seconds_value period) : period_(stepwell::detail::as_duration(period)) {}

  /// Returns true if `add` would log a line at once.
  [[nodiscard]] bool is_due(clock::time_point now) const noexcept { return !logged_at_ || now - *logged_at_ >= period_; }
  /// Logs `line` with the name `session`, or keeps it for `finish`.
  void add(const std::string& session, clock::time_point now, std::string line) {
    left_ = std::move(line);
    if (!is_due(now)) { return; }
    logged_at_ = now;
    finish(session);
  }
  /// Logs the last line if it was not logged.
  void finish(const std::string& session) {
    const log_scope named(session);
    if (const auto line = std::exchange(left_, std::nullopt)) { log_info(*line); }
  }

private:
  clock::duration period_;
  std::optional<clock::time_point> logged_at_;
  std::optional<std::string> left_;  // the last line, if it was not logged
};

}  // namespace stepwell::detail
