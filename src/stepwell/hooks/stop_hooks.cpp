// SPDX-License-Identifier: Apache-2.0
#include "stepwell/hooks/stop_hooks.hpp"

#include "stepwell/base/cadence.hpp"
#include "stepwell/base/log.hpp"
#include "stepwell/hooks/detail/value_text.hpp"

#include <fmt/format.h>
#include <utility>

namespace stepwell {

time_limit_hook::time_limit_hook(seconds_value limit) : limit_(limit) {
  if (limit.count() > 0) { return; }
  throw invalid_argument_error("time_limit_hook: the limit is " + number_text(limit.count()) + " s; it must be above zero");
}

void time_limit_hook::after_create_session(const session_requests& session, coordinator& /*threads*/) {
  if (alarm_) { return; }
  alarm_ = std::make_unique<alarm>();
  const auto when = detail::time_after(session.time()->now(), limit_);
  if (when == clock::time_point::max()) { return; }
  session.note_stop_condition({.name = "time limit",
                               .text = "ends " + number_text(limit_.count()) + " s after the start",
                               .unit = "seconds",
                               .limit = limit_.count(),
                               .end = when});
  stop_reason why{stop_cause::deadline, "the time limit of " + number_text(limit_.count()) + " s is reached"};
  // Not `request_stop_by_hook`: the alarm may fire at any moment, and must not turn a run that has begun into an error.
  *alarm_ =
      alarm(session.time(), when, [signals = session.signals(), why = std::move(why)]() mutable { signals->request_stop(std::move(why)); });
}

void stop_after_n_evals_hook::log_progress(const session_requests& session) const {
  const log_scope named(session.name());
  if (!options_.num_evals) { return log_info(fmt::format("Evaluation [{}]", evals_completed_)); }
  const auto wanted = *options_.num_evals;
  const auto period = wanted < 20 ? std::int64_t{1} : wanted / 10;
  if (evals_completed_ % period != 0 && evals_completed_ != wanted) { return; }
  log_info(fmt::format("Evaluation [{}/{}]", evals_completed_, wanted));
}

}  // namespace stepwell
