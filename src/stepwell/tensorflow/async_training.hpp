// SPDX-License-Identifier: Apache-2.0
//
// The function that makes asynchronous sessions over graphs of TensorFlow.
#pragma once

#include "stepwell/session/async_session.hpp"
#include "stepwell/tensorflow/training.hpp"
#include "stepwell/training/async_training_session.hpp"

#include <tuple>
#include <utility>

namespace stepwell {

/// Like `monitored_training_session(graph, options, hooks...)`, but returns an asynchronous session. Start the session with `async_start`.
///
/// A run of TensorFlow blocks its thread. Therefore give the session an executor for its steps:
/// `defer_start(async_options().steps_on(executor))`. A cancellation takes effect only when the current run ends. The time-out
/// `runtime_config::operation_timeout_in_ms` limits the duration of a run.
/// @errors `invalid_argument_error` for invalid options and names.
template<class... Given>
[[nodiscard]] auto monitored_training_session(const deferred_start& start, tensorflow::graph& graph, training_options options = {},
                                              Given... given) {
  auto how = start.how();
  how.creation_waits(how.creation_waits().value_or(!options.is_chief || !options.master.empty()));
  return tensorflow::detail::make_training_session<async_monitored_session>(graph, options, std::tuple<async_options>(std::move(how)),
                                                                            std::move(given)...);
}

}  // namespace stepwell
