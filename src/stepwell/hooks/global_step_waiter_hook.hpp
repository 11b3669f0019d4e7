// SPDX-License-Identifier: Apache-2.0
//
// Starts late: waits until others have brought the global step so far (contract HOOK-WAIT).
#pragma once

#include "stepwell/base/clock.hpp"
#include "stepwell/base/setting.hpp"
#include "stepwell/threads/coordinator.hpp"

#include <cstdint>
#include <functional>
#include <optional>

namespace stepwell {

struct global_step_waiter_options {
  std::int64_t wait_until_step = 0;                           ///< Zero and below: no wait.
  std::optional<seconds_value> max_wait_secs = std::nullopt;  ///< Not said: for as long as it takes.
};

/// Blocks the first run until the global step has come to `wait_until_step`; it is looked at every half second of the
/// session's clock. Between two `begin`s it waits once, also over a recovery. A stop ends the wait: at once where it is the
/// coordinator's, else with the next look; the run that waited is made, as after any stop asked for before a run.
/// @errors `deadline_exceeded_error` out of the run after `max_wait_secs`; the next run waits again.
class global_step_waiter_hook {
public:
  explicit global_step_waiter_hook(global_step_waiter_options options) : options_(options) {}

  void begin() { is_over_ = options_.wait_until_step <= 0; }

  void after_create_session(auto& /*session*/, coordinator& threads) { threads_ = &threads; }

  void before_run(auto& context) {
    if (is_over_) [[likely]] { return; }
    wait(
        *context.time(), [&] { return std::int64_t{context.raw_session().global_step()}; },  // others step it
        [&] { return context.stop_requested() || threads_->should_stop(); });
    is_over_ = true;
  }

private:
  void wait(clock& time, const std::function<std::int64_t()>& current_step, const std::function<bool()>& should_stop) const;

  global_step_waiter_options options_;
  coordinator* threads_ = nullptr;  // of the session that exists now
  bool is_over_ = false;
};

}  // namespace stepwell
