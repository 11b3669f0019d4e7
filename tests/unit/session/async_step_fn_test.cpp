// SPDX-License-Identifier: Apache-2.0
//
// Tests of async_run_step_fn, the awaited form of run_step_fn (contract STEP), and of `any_async_session`.
#include "support/async_rig.hpp"
#include "support/awaited_rig.hpp"
#include "support/catch.hpp"
#include "support/failing_model.hpp"
#include "support/log_capture.hpp"

#include <stepwell/session/any_async_session.hpp>

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>

#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace sw = stepwell;
using namespace sw::test;
using story_type = std::vector<std::string>;

namespace {

asio::awaitable<float> started_sum(auto& session, auto& step_fn) {
  co_await session.async_start();
  const float sum = co_await session.async_run_step_fn(step_fn);
  co_return sum;
}
asio::awaitable<void> started_call(auto& session, auto& step_fn) {
  co_await session.async_start();
  co_await session.async_run_step_fn(step_fn);
}

using erased = sw::any_async_session<adding_model::result, ending_source>;

asio::awaitable<std::vector<std::int64_t>> life_of_erased(erased& session, ending_source& source) {
  co_await session.async_start();
  auto seen = co_await all_steps(session, source);
  const std::int64_t batch = 7;
  const auto result = co_await session.async_run(batch);
  seen.push_back(static_cast<std::int64_t>(result.loss));
  const auto saved = co_await session.async_checkpoint_now();
  seen.push_back(saved);
  co_await session.async_close();
  co_return seen;
}

}  // namespace

TEST_CASE("a type-erased session keeps a temporary batch until its run has ended", "[session][async]") {
  async_rig rig;
  erased session(rig.async(0));
  rig.await(session.async_start());
  auto run = session.async_run(std::int64_t{7});  // the temporary does not exist any more when the run begins
  CHECK(rig.await(std::move(run)).batch == 7);
  rig.await(session.async_close());
}

TEST_CASE("STEP-1 STEP-2 STEP-3 an awaited step function gets a context, and its result is returned", "[session][async][step_fn]") {
  async_rig rig;
  story_type story;
  auto session = rig.async(0, {&story});
  auto step_fn = [](auto& context) -> asio::awaitable<float> {
    const auto first = co_await context.async_run_with_hooks(1);
    const auto second = co_await context.async_run_with_hooks(2);
    co_return first.loss + second.loss;
  };
  CHECK(rig.await(started_sum(session, step_fn)) == 1 + 3);
  CHECK(story == story_type{"begin", "create 0", "before 0", "after 1", "before 1", "after 2"});
}

TEST_CASE("STEP-4 runs on the raw session of an awaited context trigger no hook", "[session][async][step_fn]") {
  async_rig rig;
  story_type story;
  auto session = rig.async(0, {&story});
  auto step_fn = [](auto& context) -> asio::awaitable<void> {
    context.session().run(5);
    co_return;
  };
  rig.await(started_call(session, step_fn));
  CHECK(story == story_type{"begin", "create 0"});
  CHECK(rig.model.sum == 5);
}

TEST_CASE("STEP-5 request_stop leaves an awaited step function; in async_with that is a clean end", "[session][async][step_fn]") {
  async_rig rig;
  auto session = rig.async(0);
  auto stopping = [](auto& context) -> asio::awaitable<void> {
    co_await a_turn();
    context.request_stop();
  };
  CHECK_THROWS_AS(rig.await(started_call(session, stopping)), sw::stop_iteration);
  CHECK_FALSE(session.should_stop());
  auto body = [&](auto& inside) -> asio::awaitable<void> { co_await inside.async_run_step_fn(stopping); };
  rig.await(sw::async_with(session, body));
  CHECK(session.is_closed());
  CHECK(session.stop_reason().cause == sw::stop_cause::closed);
}

TEST_CASE("STEP-6 STEP-7 after a failure that may pass the whole awaited step function is repeated", "[session][async][step_fn]") {
  log_capture log;
  async_rig rig;
  auto session = rig.async(0);
  fails_once fault;
  int calls = 0;
  auto step_fn = [&](auto& context) -> asio::awaitable<void> {
    ++calls;
    context.session().run(3);
    fault.check();
    co_await context.async_run_with_hooks(4);
  };
  rig.await(started_call(session, step_fn));
  CHECK(calls == 2);
  CHECK(rig.model.sum == 3 + 4);  // restored to the start in between
  CHECK(session.metrics().recoveries == 1);
}

TEST_CASE("a run in an awaited step function saves at its boundary, and its steps may run on another executor",
          "[session][async][step_fn]") {
  log_capture log;
  async_rig rig;
  asio::thread_pool pool(1);
  auto session = rig.async(1, {}, sw::async_options().steps_on(pool.get_executor()));
  std::vector<std::int64_t> seen;
  auto step_fn = [&](auto& context) -> asio::awaitable<void> {
    for (int i = 0; i < 3; ++i) {
      co_await context.async_run_with_hooks(1);
      seen.push_back(session.global_step());
    }
  };
  auto life = [&]() -> asio::awaitable<void> {
    co_await session.async_start();
    co_await session.async_run_step_fn(step_fn);
    co_await session.async_close();
  };
  rig.await(life());
  CHECK(seen == std::vector<std::int64_t>{1, 2, 3});
  CHECK(newest_in(rig.directory.path()).step == 3);
}

TEST_CASE("runs in an awaited step function await the model, between the calls of the hooks", "[session][async][awaited][step_fn]") {
  awaited_rig rig;
  story_type story;
  auto session = rig.awaited(0, {&story});
  auto step_fn = [](auto& context) -> asio::awaitable<float> {
    const auto first = co_await context.async_run_with_hooks(std::int64_t{1});
    const auto second = co_await context.async_run_with_hooks(std::int64_t{2});
    co_return first.loss + second.loss;
  };
  CHECK(rig.await(started_sum(session, step_fn)) == 1 + 3);
  CHECK(story == story_type{"begin", "create 0", "before 0", "after 1", "before 1", "after 2"});
}

TEST_CASE("an awaited step function that is cancelled while it waits is no failure, and the session continues",
          "[session][async][step_fn]") {
  async_rig rig;
  story_type story;
  auto session = rig.async(0, {&story});
  bool waits = false;
  auto step_fn = [&](auto& context) -> asio::awaitable<void> {
    co_await context.async_run_with_hooks(1);
    asio::steady_timer never(co_await asio::this_coro::executor, asio::steady_timer::time_point::max());
    waits = true;
    co_await never.async_wait(asio::use_awaitable);
  };
  auto start = [&]() -> asio::awaitable<void> { co_await session.async_start(); };
  rig.await(start());
  asio::cancellation_signal signal;
  std::exception_ptr failure;
  asio::co_spawn(rig.io, session.async_run_step_fn(step_fn),
                 asio::bind_cancellation_slot(signal.slot(), [&](std::exception_ptr how) { failure = std::move(how); }));
  rig.io.restart();
  while (!waits) { rig.io.run_one(); }
  signal.emit(asio::cancellation_type::terminal);
  rig.io.run();
  CHECK(sw::coro::is_aborted(failure));
  CHECK(story == story_type{"begin", "create 0", "before 0", "after 1"});  // no "error"
  auto again = [](auto& context) -> asio::awaitable<void> { co_await context.async_run_with_hooks(2); };
  auto once_more = [&]() -> asio::awaitable<void> { co_await session.async_run_step_fn(again); };
  rig.await(once_more());
  CHECK(session.global_step() == 2);
}

TEST_CASE("a session destroyed while an awaited step function waits keeps what the function uses until it ends",
          "[session][async][step_fn]") {
  async_rig rig;
  bool waits = false;
  bool is_aborted = false;
  {
    auto session = rig.async(0);
    auto step_fn = [&](auto& context) -> asio::awaitable<void> {
      asio::steady_timer never(co_await asio::this_coro::executor, asio::steady_timer::time_point::max());
      waits = true;
      co_await never.async_wait(asio::use_awaitable);
      co_await context.async_run_with_hooks(1);
    };
    auto start = [&]() -> asio::awaitable<void> { co_await session.async_start(); };
    rig.await(start());
    asio::cancellation_signal signal;
    auto kept = std::make_unique<async_test_session>(std::move(session));
    asio::co_spawn(rig.io, kept->async_run_step_fn(step_fn),
                   asio::bind_cancellation_slot(signal.slot(), [&](std::exception_ptr how) { is_aborted = sw::coro::is_aborted(how); }));
    rig.io.restart();
    while (!waits) { rig.io.run_one(); }
    kept.reset();
    signal.emit(asio::cancellation_type::terminal);
    rig.io.run();
  }
  CHECK(is_aborted);
}

TEST_CASE("a session inside any_async_session behaves like the same session without it", "[session][async][any]") {
  log_capture log;
  async_rig rig;
  story_type story;
  ending_source source{3};
  erased session(rig.async(2, {&story}));
  CHECK(rig.await(life_of_erased(session, source)) == std::vector<std::int64_t>{1, 2, 3, 1 + 2 + 3 + 7, 4});
  CHECK(session.is_closed());
  CHECK(newest_in(rig.directory.path()).step == 4);

  erased other(std::make_unique<async_test_session>(rig.async(0)));
  auto failing = [](erased& inside) -> asio::awaitable<void> {
    co_await inside.async_start();
    throw sw::invalid_argument_error("no good");
  };
  CHECK_THROWS_AS(rig.await(sw::async_with(other, failing)), sw::invalid_argument_error);
  CHECK(other.is_closed());
  CHECK_THROWS_AS(erased(std::unique_ptr<async_test_session>()), sw::invalid_argument_error);
}

TEST_CASE("RUN-1 after a stop by a hook an awaited step function is called, and only its runs with hooks are refused",
          "[session][async][step_fn]") {
  async_rig rig;
  auto session = rig.async(0, {.after = [](auto& context) { context.request_stop(); }});
  auto step_fn = [](auto& context) -> asio::awaitable<void> { co_await context.async_run_with_hooks(1); };
  rig.await(started_call(session, step_fn));
  int calls = 0;
  auto again = [&calls](auto& context) -> asio::awaitable<void> {
    ++calls;
    co_await context.async_run_with_hooks(1);
  };
  CHECK_THROWS_WITH(rig.await(session.async_run_step_fn(again)), ContainsSubstring("Run called even after should_stop requested."));
  CHECK(calls == 1);
}
