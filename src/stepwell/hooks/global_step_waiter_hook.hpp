// SPDX-License-Identifier: Apache-2.0
//
// A hook that delays the first run until other sessions have increased the global step to a given value.
// @see contract HOOK-WAIT
#pragma once

#include "stepwell/base/cadence.hpp"
#include "stepwell/base/clock.hpp"
#include "stepwell/protocol/raw_session.hpp"
#include "stepwell/threads/coordinator.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>

namespace stepwell {

/// Options of `global_step_waiter_hook`.
struct global_step_waiter_options {
  std::int64_t wait_until_step = 0;                           ///< If zero or negative, there is no wait.
  std::optional<seconds_value> max_wait_secs = std::nullopt;  ///< If empty, there is no limit.
};

/// Blocks the first run until the global step has reached `wait_until_step`. The hook checks the global step every half second of the
/// session's clock. The hook waits once in the lifetime of a session, even if the session recovers. If the coordinator of the session's
/// threads is stopped, the wait ends at once. A stop request to the session itself, for example by a signal, ends the wait at the next
/// check. After a wait that was ended by a stop, the delayed run is executed, because a stop does not cancel a run that has begun.
/// @errors `deadline_exceeded_error`, thrown by the run, if the step is not reached within `max_wait_secs`. The next run then waits again.
class global_step_waiter_hook {
public:
  /// @errors `invalid_argument_error` for a negative `max_wait_secs`.
  explicit global_step_waiter_hook(global_step_waiter_options options) : options_(options) {
    detail::refuse_negative("max_wait_secs", options.max_wait_secs);
  }

  void begin() { is_over_ = options_.wait_until_step <= 0; }

  void after_create_session(auto& /*session*/, coordinator& threads) { threads_ = &threads; }

  void before_run(auto& context) {
    if (is_over_) [[likely]] { return; }
    // Reads the step from the raw session: `context.global_step()` does not count the steps that other sessions do during the wait.
    const auto current_step = [&] { return step_of(context.raw_session()); };
    wait(*context.time(), context.name(), current_step, [&] { return context.stop_requested() || threads_->should_stop(); });
    is_over_ = true;
  }

private:
  /// Returns the current global step, including the steps of other sessions. A raw session whose state is in another process has
  /// `read_global_step`, which reads the step from that process.
  static std::int64_t step_of(auto& raw) {
    if constexpr (detail::has_read_global_step<std::remove_cvref_t<decltype(raw)>>) {
      return raw.read_global_step();
    } else {
      return raw.global_step();
    }
  }
  void wait(clock& time, const std::string& session, const std::function<std::int64_t()>& current_step,
            const std::function<bool()>& should_stop) const;

  global_step_waiter_options options_;
  coordinator* threads_ = nullptr;  // the coordinator of the current session
  bool is_over_ = false;
};

}  // namespace stepwell
