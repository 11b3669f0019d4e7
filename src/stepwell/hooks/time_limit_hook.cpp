// SPDX-License-Identifier: Apache-2.0
#include "stepwell/hooks/time_limit_hook.hpp"

#include "stepwell/base/detail/time_after.hpp"
#include "stepwell/base/error.hpp"
#include "stepwell/hooks/detail/value_text.hpp"

#include <utility>

namespace stepwell {

time_limit_hook::time_limit_hook(seconds_value limit) : limit_(limit) {
  if (limit.count() > 0) { return; }
  throw invalid_argument_error("time_limit_hook: the limit is " + number_text(limit.count()) + " s; it must be above zero");
}

void time_limit_hook::start(const std::shared_ptr<clock>& time, const std::shared_ptr<session_signals>& signals) {
  alarm_ = std::make_unique<alarm>();
  const auto when = detail::time_after(time->now(), limit_);
  if (when == clock::time_point::max()) { return; }
  stop_reason why{stop_cause::deadline, "the time limit of " + number_text(limit_.count()) + " s is reached"};
  // Not `request_stop_by_hook`: the alarm may fire at any moment, and must not turn a run that has begun into an error.
  *alarm_ = alarm(time, when, [signals, why = std::move(why)]() mutable { signals->request_stop(std::move(why)); });
}

}  // namespace stepwell
