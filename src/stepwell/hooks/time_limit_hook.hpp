// SPDX-License-Identifier: Apache-2.0
//
// A hook that ends the loop after a time limit.
#pragma once

#include "stepwell/base/clock.hpp"
#include "stepwell/base/setting.hpp"
#include "stepwell/hook/session_signals.hpp"

#include <memory>

namespace stepwell {

/// Requests a stop, with `stop_cause::deadline`, when this session has existed for `limit` on its clock. The current step is completed
/// first. A recovery does not restart the time. `time_limit_hook{std::chrono::hours(2)}`.
/// @cost None for a step: an alarm of the clock requests the stop.
class time_limit_hook {
public:
  /// @errors `invalid_argument_error` unless `limit` is above zero.
  explicit time_limit_hook(seconds_value limit);

  void begin() { alarm_ = nullptr; }

  void after_create_session(auto& session, auto& /*threads*/) {
    if (!alarm_) { start(session.time(), session.signals()); }
  }

  void end(auto& /*session*/) { alarm_ = nullptr; }

private:
  void start(const std::shared_ptr<clock>& time, const std::shared_ptr<session_signals>& signals);

  seconds_value limit_;
  std::unique_ptr<alarm> alarm_;  // null: not started
};

}  // namespace stepwell
