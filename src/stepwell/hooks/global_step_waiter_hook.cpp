// SPDX-License-Identifier: Apache-2.0
#include "stepwell/hooks/global_step_waiter_hook.hpp"

#include "stepwell/base/cadence.hpp"
#include "stepwell/base/error.hpp"
#include "stepwell/base/log.hpp"
#include "stepwell/hooks/detail/value_text.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <chrono>

namespace stepwell {
void global_step_waiter_hook::wait(clock& time, const std::string& session, const std::function<std::int64_t()>& current_step,
                                   const std::function<bool()>& should_stop) const {
  const log_scope named(session);
  constexpr auto slice = std::chrono::milliseconds(500);
  constexpr std::int64_t steps_between_lines = 1000;
  const auto wanted = options_.wait_until_step;
  const auto until = options_.max_wait_secs ? detail::time_after(time.now(), *options_.max_wait_secs) : clock::time_point::max();
  log_info(fmt::format("Waiting for global step {} before starting training.", wanted));
  std::int64_t last_logged = 0;
  for (auto step = current_step(); step < wanted; step = current_step()) {
    if (should_stop()) { return log_info(fmt::format("No longer waiting for global step {}: asked to stop.", wanted)); }
    if (step - last_logged > steps_between_lines) {
      log_info(fmt::format("Waiting for global step {} before starting training. Current step is {}.", wanted, step));
      last_logged = step;
    }
    const auto now = time.now();
    if (now >= until) {
      throw deadline_exceeded_error(
          fmt::format("waited {} s for global step {}, but it is {}; wait longer, or check the sessions that run the steps",
                      number_text(options_.max_wait_secs->count()), wanted, step));
    }
    threads_->wait_for_stop(std::min(now + slice, until));
  }
}

}  // namespace stepwell
