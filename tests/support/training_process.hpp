// SPDX-License-Identifier: Apache-2.0
//
// A training like that of a new process, which may end as if the process were killed.
#pragma once

#include <stepwell/training/monitored_training_session.hpp>

#include <cstdint>
#include <stdexcept>
#include <utility>

namespace stepwell::test {

/// The end of a training that was closed.
struct training_end {
  std::int64_t global_step;
  stepwell::stop_reason why;
  session_metrics metrics;
};

/// Returns options with which a save is made at each step at which it is due. It is not synced.
inline saver_options unsynced_saves() { return {.sync = false}; }

/// Throws `std::runtime_error("killed")` after step `killed_at`.
inline void throw_if_killed(std::int64_t step, std::int64_t killed_at) {
  if (step == killed_at) { throw std::runtime_error("killed"); }
}

/// Trains like a new process, until the data ends or a hook requests a stop. After step `killed_at`, an exception leaves the session, which
/// then saves nothing.
template<class Model, class Source, class... Hooks>
training_end train_blocking(Model& model, const training_options& options, Source& source, std::int64_t killed_at, Hooks... hooks) {
  auto session = monitored_training_session(model, options, std::move(hooks)...);
  for (const auto& step : session.steps(source)) { throw_if_killed(step.global_step, killed_at); }
  session.close();
  return {session.global_step(), session.stop_reason(), session.metrics()};
}

}  // namespace stepwell::test
