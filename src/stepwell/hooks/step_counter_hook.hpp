// SPDX-License-Identifier: Apache-2.0
//
// A hook that measures steps per second.
// @see contract HOOK-CNT
#pragma once

#include "stepwell/base/cadence.hpp"
#include "stepwell/hooks/detail/rare_log.hpp"
#include "stepwell/protocol/hook.hpp"
#include "stepwell/protocol/hook_options.hpp"
#include "stepwell/protocol/run_context.hpp"
#include "stepwell/protocol/watched_values.hpp"
#include "stepwell/summary/writer.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace stepwell {

namespace detail {
struct default_hooks;
}

/// Measures the number of steps per second once in each period. If there is an event file, writes this rate to it as the scalar
/// "global_step/sec". Logs the rate as "global_step/sec: 12.3", at most once in `log_every_secs`. The first run of a session only starts
/// the measurement, so the first rate is measured one period later. If a run does not change the global step, a warning is logged; at most
/// five such warnings are logged in a process.
/// @cost Two comparisons for each run. With `every_n_secs`, also one relaxed atomic load.
/// @see contract HOOK-CNT-5
class step_counter_hook {
public:
  static constexpr auto phase = hook_phase::observe;

  static constexpr cadence default_period{.every_steps = 100};

  explicit step_counter_hook(step_counter_options options = {});
  [[nodiscard]] static step_counter_hook off() { return step_counter_hook({}, std::nullopt); }

  void begin();

  void after_create_session(auto& session, auto& /*threads*/) { start(session, session.global_step()); }

  void after_run(auto& context, const auto&) {
    const std::int64_t step = context.global_step();
    if (step == last_step_) [[unlikely]] { note_standstill(); }
    last_step_ = step;
    if (timer_.should_trigger_for_step(step)) [[unlikely]] { count(step); }
  }

private:
  friend struct detail::default_hooks;

  /// Uses `period` instead of the periods in `options`. If it is empty, the hook does nothing.
  step_counter_hook(step_counter_options options, std::optional<cadence> period);
  void start(const session_requests& session, std::int64_t step);
  void count(std::int64_t step);
  void note_standstill() const;

  std::optional<cadence> period_;
  step_counter_options options_;  // `writer` is set by `begin` if there is an output directory
  second_or_step_timer timer_;
  detail::rare_log log_;
  std::shared_ptr<clock> clock_;
  std::string session_;  // the name of the session
  value_publisher publisher_;
  std::int64_t last_step_ = 0;  // step after the previous run
};

}  // namespace stepwell
