// SPDX-License-Identifier: Apache-2.0
//
// A limit for the log lines of a hook that would otherwise log too often.
#pragma once

#include "stepwell/base/cadence.hpp"
#include "stepwell/base/clock.hpp"
#include "stepwell/base/log.hpp"
#include "stepwell/protocol/run_context.hpp"

#include <optional>
#include <string>
#include <utility>

namespace stepwell::detail {

/// Logs a line unless another one was logged a short time ago. The last line is logged in any case, at the latest by `finish`.
/// @threads The session's thread.
class rare_log {
public:
  explicit rare_log(seconds_value period) : period_(stepwell::detail::as_duration(period)) {}

  void add(const session_requests& session, clock::time_point now, std::string line) {
    if (logged_at_ && now - *logged_at_ < period_) {
      left_ = std::move(line);
      return;
    }
    logged_at_ = now;
    left_.reset();
    session.log(log_level::info, line);
  }
  /// Logs the last line if it was not logged.
  void finish(const session_requests& session) {
    if (const auto line = std::exchange(left_, std::nullopt)) { session.log(log_level::info, *line); }
  }

private:
  clock::duration period_;
  std::optional<clock::time_point> logged_at_;
  std::optional<std::string> left_;
};

}  // namespace stepwell::detail
