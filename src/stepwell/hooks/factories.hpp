// SPDX-License-Identifier: Apache-2.0
//
// Short forms of hooks whose only option is usually a period: `log_every(100, ...)` for `logging_tensor_hook{{.every_n_iter = 100}, ...}`.
// A period is a number of steps (an integer) or a time (a chrono duration such as `30s`). `stop_at_step(1000)` and `stop_at_epoch(10)` are
// in stop_hooks.hpp, `every_n_steps`, `every`, `every_epoch` and `at_end` in function_hooks.hpp, and `scheduled` in scheduled_hook.hpp.
#pragma once

#include "stepwell/base/cadence.hpp"
#include "stepwell/hooks/checkpoint_saver_hook.hpp"
#include "stepwell/hooks/logging_tensor_hook.hpp"
#include "stepwell/hooks/summary_saver_hook.hpp"

#include <chrono>
#include <concepts>
#include <cstdint>
#include <string>
#include <utility>

namespace stepwell {

/// Returns a hook that logs values after the first run of this session and then in every `n`-th run, or once in each `period`:
/// `log_every(100, &result::loss, tag("rate", &model::rate))`.
/// @errors The errors of `logging_tensor_hook`.
template<std::integral Steps, class... Given>
  requires(sizeof...(Given) > 0)
[[nodiscard]] auto log_every(Steps n, Given... given) {
  return logging_tensor_hook(logging_tensor_options{.every_n_iter = static_cast<std::int64_t>(n)}, std::move(given)...);
}
template<class Rep, class Period, class... Given>
  requires(sizeof...(Given) > 0)
[[nodiscard]] auto log_every(std::chrono::duration<Rep, Period> period, Given... given) {
  return logging_tensor_hook(logging_tensor_options{.every_n_secs = seconds_value(period)}, std::move(given)...);
}

/// Returns a hook that saves a checkpoint in `directory` every `n` steps, or once in each `period`: `save_every(500, "run")`. The
/// session of a chief that `monitored_training_session` makes with a `checkpoint_dir` has such a hook already.
/// @errors The errors of `checkpoint_saver_hook`.
template<std::integral Steps>
[[nodiscard]] checkpoint_saver_hook save_every(Steps n, std::string directory) {
  return checkpoint_saver_hook({.checkpoint_dir = std::move(directory), .save_steps = static_cast<std::int64_t>(n)});
}
template<class Rep, class Period>
[[nodiscard]] checkpoint_saver_hook save_every(std::chrono::duration<Rep, Period> period, std::string directory) {
  return checkpoint_saver_hook({.checkpoint_dir = std::move(directory), .save_secs = seconds_value(period)});
}

/// Returns a hook that writes summaries to an event file in `directory` every `n` steps, or once in each `period`:
/// `summarize_every(10, "run", summary::scalar("loss", &result::loss))`. Without `directory`, the hook writes to the event file of its
/// session: `summarize_every(10, summary::scalar("loss", &result::loss))`.
/// @errors The errors of `summary_saver_hook`.
template<std::integral Steps, summary::summary_op... Ops>
[[nodiscard]] summary_saver_hook<Ops...> summarize_every(Steps n, std::string directory, Ops... ops) {
  return summary_saver_hook<Ops...>({.output_dir = std::move(directory), .save_steps = static_cast<std::int64_t>(n)}, std::move(ops)...);
}
template<class Rep, class Period, summary::summary_op... Ops>
[[nodiscard]] summary_saver_hook<Ops...> summarize_every(std::chrono::duration<Rep, Period> period, std::string directory, Ops... ops) {
  return summary_saver_hook<Ops...>({.output_dir = std::move(directory), .save_secs = seconds_value(period)}, std::move(ops)...);
}
template<std::integral Steps, summary::summary_op... Ops>
  requires(sizeof...(Ops) > 0)
[[nodiscard]] summary_saver_hook<Ops...> summarize_every(Steps n, Ops... ops) {
  return stepwell::summarize_every(n, std::string(), std::move(ops)...);
}
template<class Rep, class Period, summary::summary_op... Ops>
  requires(sizeof...(Ops) > 0)
[[nodiscard]] summary_saver_hook<Ops...> summarize_every(std::chrono::duration<Rep, Period> period, Ops... ops) {
  return stepwell::summarize_every(period, std::string(), std::move(ops)...);
}

}  // namespace stepwell
