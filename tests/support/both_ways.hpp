// SPDX-License-Identifier: Apache-2.0
//
// Trains with a blocking or an awaited training session, so that one test compares both.
#pragma once

#include "support/training_process.hpp"

#include <stepwell/training/async_training_session.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>

#include <cstdint>
#include <utility>

namespace stepwell::test {

enum class session_way { blocking, awaited };

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

/// Like `train_blocking`, with an awaited session.
template<class Model, class Source, class... Hooks>
training_end train_awaited(Model& model, const training_options& options, Source& source, std::int64_t killed_at, Hooks... hooks) {
  auto session = monitored_training_session(defer_start, model, options, std::move(hooks)...);
  awaited_training<Source> body{source, killed_at};
  boost::asio::io_context loop;
  auto done = boost::asio::co_spawn(loop, async_with(session, body), boost::asio::use_future);
  loop.run();
  done.get();
  return {session.global_step(), session.stop_reason(), session.metrics()};
}
template<class Model, class Source, class... Hooks>
training_end train(session_way way, Model& model, const training_options& options, Source& source, std::int64_t killed_at, Hooks... hooks) {
  return way == session_way::blocking ? train_blocking(model, options, source, killed_at, std::move(hooks)...)
                                      : train_awaited(model, options, source, killed_at, std::move(hooks)...);
}

}  // namespace stepwell::test
