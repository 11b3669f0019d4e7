// SPDX-License-Identifier: Apache-2.0
//
// Trains with a blocking or an awaited training session, so that one test compares both.
#pragma once

#include <stepwell/training/async_training_session.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>

#include <cstdint>
#include <stdexcept>
#include <utility>

namespace stepwell::test {

enum class session_way { blocking, awaited };

/// The end of a training that was closed.
struct training_end {
  std::int64_t global_step;
  stepwell::stop_reason why;
  session_metrics metrics;
};

/// Returns options with which a save is made at each step at which it is due. It is not synced.
inline saver_options unsynced_saves() { return {.when_busy = when_busy::wait, .sync = false}; }

/// Throws `std::runtime_error("killed")` after step `killed_at`.
inline void throw_if_killed(std::int64_t step, std::int64_t killed_at) {
  if (step == killed_at) { throw std::runtime_error("killed"); }
}

/// The body of an awaited training: starts the session and does all steps.
template<class Source>
struct awaited_training {
  Source& source;
  std::int64_t killed_at;

  boost::asio::awaitable<void> operator()(auto& session) {
    co_await session.async_start();
    for (;;) {
      const auto step = co_await session.async_next(source);
      if (!step) { break; }
      throw_if_killed(step->global_step, killed_at);
    }
  }
};

/// Trains like a new process, until the data ends or a hook requests a stop. After step `killed_at`, an exception leaves the session, which
/// then saves nothing.
template<class Model, class Source, class... Hooks>
training_end train_blocking(Model& model, const training_options<Model>& options, Source& source, std::int64_t killed_at, Hooks... hooks) {
  auto session = monitored_training_session(model, options, std::move(hooks)...);
  for (const auto& step : session.steps(source)) { throw_if_killed(step.global_step, killed_at); }
  session.close();
  return {session.global_step(), session.stop_reason(), session.metrics()};
}
/// Like `train_blocking`, with an awaited session.
template<class Model, class Source, class... Hooks>
training_end train_awaited(Model& model, const training_options<Model>& options, Source& source, std::int64_t killed_at, Hooks... hooks) {
  auto session = monitored_training_session(defer_start, model, options, std::move(hooks)...);
  awaited_training<Source> body{source, killed_at};
  boost::asio::io_context loop;
  auto done = boost::asio::co_spawn(loop, async_with(session, body), boost::asio::use_future);
  loop.run();
  done.get();
  return {session.global_step(), session.stop_reason(), session.metrics()};
}
template<class Model, class Source, class... Hooks>
training_end train(session_way way, Model& model, const training_options<Model>& options, Source& source, std::int64_t killed_at,
                   Hooks... hooks) {
  return way == session_way::blocking ? train_blocking(model, options, source, killed_at, std::move(hooks)...)
                                      : train_awaited(model, options, source, killed_at, std::move(hooks)...);
}

}  // namespace stepwell::test
