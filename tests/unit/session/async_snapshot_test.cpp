// SPDX-License-Identifier: Apache-2.0
//
// Tests of snapshots of an asynchronous session: the thread that copies, the wait for a buffer, and interruption at any
// moment.
#include "support/async_rig.hpp"
#include "support/catch.hpp"
#include "support/log_capture.hpp"

#include <stepwell/model/model.hpp>

#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>

#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace sw = stepwell;
using namespace sw::test;

static_assert(std::is_default_constructible_v<sw::snapshot>, "for completion tokens that are no use_awaitable");

namespace {

/// A model that records the thread that requests its variables.
struct noting_model {
  int count = 0;
  std::thread::id asked_by = {};

  void step() { ++count; }
  sw::variable_list variables() {
    asked_by = std::this_thread::get_id();
    return sw::variables({{"count", count}});
  }
};

asio::awaitable<adding_model> a_copy(async_test_session& session) {
  const auto taken = co_await session.async_snapshot();
  adding_model copy;
  sw::restore(copy, taken);
  co_return copy;
}

/// Trains and holds the newest two snapshots. Continues an interrupted session.
asio::awaitable<void> snapshots_all_along(async_test_session& session, ending_source& source, sw::snapshot_pool pool) {
  co_await asio::this_coro::reset_cancellation_state(asio::enable_total_cancellation());
  if (!session.is_started()) { co_await session.async_start(); }
  std::optional<sw::snapshot> newest;
  for (;;) {
    const auto step = co_await session.async_next(source);
    if (!step) { break; }
    auto taken = co_await session.async_snapshot(pool);
    CHECK(taken.step() == step->global_step);
    adding_model copy;
    sw::restore(copy, taken);
    CHECK(same(copy, model_after(step->global_step)));
    newest = std::move(taken);
  }
  co_await session.async_close();
}
asio::awaitable<void> snapshots_within(async_rig& rig, sw::snapshot_pool pool) {
  auto session = rig.async(2);
  ending_source source{3};
  co_await snapshots_all_along(session, source, std::move(pool));
}

}  // namespace

TEST_CASE("an awaited snapshot is copied on another thread, and later steps do not change it", "[session][async][snapshot]") {
  asio::io_context loop;
  noting_model model;
  sw::async_monitored_session<sw::model_session<noting_model>> session(at_once(), model);
  sw::snapshot taken;
  asio::co_spawn(
      loop,
      [](auto& all, auto& into) -> asio::awaitable<void> {
        co_await all.async_start();
        static_cast<void>(co_await all.async_next());
        into = co_await all.async_snapshot();
        static_cast<void>(co_await all.async_next());
      }(session, taken),
      [](const std::exception_ptr& failure) { CHECK_FALSE(failure); });
  loop.run();
  CHECK(model.asked_by != std::this_thread::get_id());
  CHECK(model.count == 2);
  noting_model copy;
  sw::restore(copy, taken);
  CHECK(copy.count == 1);
  CHECK(taken.step() == 1);
}

TEST_CASE("an awaited snapshot is refused before the start, after the close, and beside another operation", "[session][async][snapshot]") {
  log_capture log;
  async_rig rig;
  auto session = rig.async(0);
  ending_source source{2};
  CHECK_THROWS_WITH(rig.await(a_copy(session)), ContainsSubstring("await async_start() first"));
  rig.await(session.async_start());
  rig.await(all_steps(session, source));
  CHECK(same(rig.await(a_copy(session)), model_after(2)));
  std::exception_ptr failure;
  session.async_snapshot(
      asio::bind_executor(rig.io.get_executor(), [](const std::exception_ptr& how, const sw::snapshot&) { CHECK_FALSE(how); }));
  session.async_snapshot(asio::bind_executor(rig.io.get_executor(), [&](std::exception_ptr how, const sw::snapshot&) { failure = how; }));
  rig.io.restart(), rig.io.run();
  CHECK_THROWS_WITH(std::rethrow_exception(failure), ContainsSubstring("another operation"));
  CHECK(session.async_snapshot(asio::use_future).get().step() == 2);
  rig.await(session.async_close());
  CHECK_THROWS_WITH(rig.await(a_copy(session)), ContainsSubstring("closed"));
}

TEST_CASE("a wait for a buffer blocks no other caller, and ends when a buffer is returned", "[session][async][snapshot]") {
  async_rig rig;
  auto session = rig.async(0);
  sw::snapshot_pool pool(256, 1);
  auto held = pool.try_acquire();
  rig.await(session.async_start());
  bool is_taken = false;
  session.async_snapshot(pool,
                         asio::bind_executor(rig.io.get_executor(), [&](const std::exception_ptr& failure, const sw::snapshot& taken) {
                           CHECK_FALSE(failure);
                           CHECK(taken.entries().size() == 4);
                           is_taken = true;
                         }));
  rig.io.restart();
  bool is_heard = false;
  asio::post(rig.io, [&] { is_heard = true; });
  rig.io.poll();
  CHECK(is_heard);
  CHECK_FALSE(is_taken);
  held.reset();
  rig.io.run();
  CHECK(is_taken);
  CHECK(pool.available() == 1);
}

TEST_CASE("the wait for a buffer can be cancelled, and left", "[session][async][snapshot][cancel]") {
  const auto kind = GENERATE(asio::cancellation_type::terminal, asio::cancellation_type::partial, asio::cancellation_type::total);
  async_rig rig;
  sw::snapshot_pool pool(256, 1);
  auto held = pool.try_acquire();
  {
    auto session = rig.async(0);
    rig.await(session.async_start());
    asio::cancellation_signal cancel;
    std::exception_ptr failure;
    const auto keep = [&] {
      return asio::bind_executor(rig.io.get_executor(), [&](std::exception_ptr how, const sw::snapshot&) { failure = how; });
    };
    session.async_snapshot(pool, asio::bind_cancellation_slot(cancel.slot(), keep()));
    rig.io.restart(), rig.io.poll();
    cancel.emit(kind);
    rig.io.run();
    CHECK(was_aborted(failure));
    ending_source source{1};
    CHECK(rig.await(all_steps(session, source)) == std::vector<std::int64_t>{1});
    failure = nullptr;
    session.async_snapshot(pool, keep());
    rig.io.restart(), rig.io.poll();
    { auto left = std::move(session); }
    rig.io.run();
    CHECK(was_aborted(failure));
  }
  held.reset();
  CHECK(pool.available() == 1);
}

TEST_CASE("a session that gives snapshots may be abandoned after any number of handlers", "[session][async][snapshot][abandon]") {
  log_capture log;
  int handlers = 0;
  for (bool has_ended = false; !has_ended; ++handlers) {
    async_rig rig;
    sw::snapshot_pool pool(256, 2);
    {
      asio::io_context loop;
      asio::co_spawn(loop, snapshots_within(rig, pool), [&](const std::exception_ptr& failure) {
        CHECK_FALSE(failure);
        has_ended = true;
      });
      run_handlers(loop, handlers, has_ended);
    }
    CHECK(pool.available() == 2);
    rig.settle();
  }
  CHECK(handlers > 10);
}

TEST_CASE("a session that gives snapshots may be cancelled after any number of handlers, and goes on",
          "[session][async][snapshot][cancel]") {
  log_capture log;
  int handlers = 0;
  int aborted = 0;
  for (bool has_ended = false; !has_ended; ++handlers) {
    async_rig rig;
    sw::snapshot_pool pool(256, 2);
    auto session = rig.async(2);
    ending_source source{3};
    const auto end = cancel_after(rig.io, handlers, snapshots_all_along(session, source, pool));
    has_ended = end.had_ended;
    REQUIRE(end.is_done);
    if (end.failure) {
      CHECK(was_aborted(end.failure));
      ++aborted;
      if (!session.is_closed()) { rig.await(snapshots_all_along(session, source, pool)); }
    }
    CHECK(session.is_closed());
    CHECK(same(rig.model, model_after(3)));
    CHECK(pool.available() == 2);
  }
  CHECK(aborted > 5);
}
