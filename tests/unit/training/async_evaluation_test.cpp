// SPDX-License-Identifier: Apache-2.0
//
// Awaited sessions that are left while an evaluation beside the training runs.
#include "support/async_rig.hpp"
#include "support/catch.hpp"
#include "support/gate.hpp"
#include "support/log_capture.hpp"
#include "unit/hooks/effects_hook.hpp"

#include <stepwell/hooks/evaluate_every.hpp>
#include <stepwell/hooks/stop_hooks.hpp>
#include <stepwell/training/async_training_session.hpp>

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

namespace sw = stepwell;
using namespace sw::test;

namespace {

constexpr std::int64_t last_step = 7;
const effects expected_effects = {{4, 3}, {6, 10}};  // the sums of steps 2 and 4

/// A training with an evaluation that passes a gate. Another model is used for each evaluation.
struct evaluated_rig : async_rig {
  gate evaluation;
  adding_model other;
  effects seen;

  [[nodiscard]] auto evaluated() {
    const auto sum_of = [this](const adding_model& now) {
      evaluation.pass();
      return static_cast<double>(now.sum);
    };
    const auto tested = sw::evaluate_every({.every = 2, .log = false, .summaries = false}, sw::beside(other), sum_of,
                                           sw::measure("sum", [](double value) { return value; }));
    return sw::monitored_training_session(sw::defer_start, model, options(), tested, effects_hook{tested.value("sum"), &seen},
                                          sw::stop_at_step(last_step));
  }

  /// Trains to the end with a new session, which continues from the directory.
  void finish() {
    model = adding_model();
    seen.clear();
    counting_source source;
    when_free([&] {
      auto session = evaluated();
      static_cast<void>(await(whole_life(session, source)));
    });
    CHECK(same(model, model_after(last_step)));
  }
};

asio::awaitable<void> start_and_do(auto& session, counting_source& source, int steps) {
  co_await session.async_start();
  for (int i = 0; i < steps; ++i) { static_cast<void>(co_await session.async_next(source)); }
}

asio::awaitable<void> continue_to_end(auto& session, counting_source& source) {
  co_await asio::this_coro::reset_cancellation_state(asio::enable_total_cancellation());
  if (!session.is_started()) { co_await session.async_start(); }
  for (;;) {
    const auto step = co_await session.async_next(source);
    if (!step) { break; }
  }
  co_await session.async_close();
}

}  // namespace

TEST_CASE("a session that is destroyed or abandoned while an evaluation runs waits for it, and the next session evaluates that state again",
          "[training][async][evaluate_every][abandon]") {
  const log_capture log;
  const bool is_destroyed = GENERATE(true, false);
  evaluated_rig rig;
  rig.evaluation.close();
  bool has_evaluated = false;
  std::thread opener;
  {
    auto session = rig.evaluated();
    counting_source source;
    rig.await(start_and_do(session, source, 3));
    rig.evaluation.wait_for_somebody();
    opener = std::thread([&] {
      has_evaluated = true;
      rig.evaluation.open();
    });
    if (!is_destroyed) { rig.await(session.async_abandon()); }
  }
  opener.join();
  CHECK(has_evaluated);
  CHECK(rig.other.sum == 3);
  rig.finish();
  CHECK(rig.seen == expected_effects);
}

TEST_CASE("an awaited training with an evaluation beside it may be left after any number of handlers, and the next one continues",
          "[training][async][evaluate_every][abandon]") {
  const log_capture log;
  int handlers = 0;
  for (bool has_ended = false; !has_ended; ++handlers) {
    evaluated_rig rig;
    {
      counting_source source;
      auto session = rig.evaluated();
      asio::io_context loop;
      asio::co_spawn(loop, continue_to_end(session, source), [&](const std::exception_ptr& failure) {
        CHECK_FALSE(failure);
        has_ended = true;
      });
      run_handlers(loop, handlers, has_ended);
    }
    rig.finish();
  }
  CHECK(handlers > 5);
}

TEST_CASE(
    "an awaited training with an evaluation beside it may be cancelled after any number of handlers, and goes on with the same effects",
    "[training][async][evaluate_every][cancel]") {
  const log_capture log;
  int handlers = 0;
  int aborted = 0;
  for (bool has_ended = false; !has_ended; ++handlers) {
    evaluated_rig rig;
    counting_source source;
    auto session = rig.evaluated();
    const auto end = cancel_after(rig.io, handlers, continue_to_end(session, source));
    has_ended = end.had_ended;
    if (was_aborted(end.failure)) {
      ++aborted;
      rig.await(continue_to_end(session, source));
    } else {
      CHECK_FALSE(end.failure);
    }
    CHECK(same(rig.model, model_after(last_step)));
    CHECK(rig.seen == expected_effects);
  }
  CHECK(aborted > 0);
}
