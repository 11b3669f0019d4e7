// SPDX-License-Identifier: Apache-2.0
//
// Tests of an asynchronous session that is abandoned or cancelled after every possible number of handlers of its event
// loop.
#include "support/async_rig.hpp"
#include "support/catch.hpp"
#include "support/gate.hpp"
#include "support/log_capture.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/thread_pool.hpp>

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace sw = stepwell;
using namespace sw::test;
using story_type = std::vector<std::string>;

namespace {

constexpr std::int64_t last_step = 4;

/// The ways to run steps.
enum class stepping { by_next, by_sequence, by_run };

/// Runs steps until `next()` returns no step.
asio::awaitable<void> step_on(async_test_session& session, auto& next) {
  for (;;) {
    const auto step = co_await next();
    if (!step) { break; }
    if (step->global_step == 3) { co_await session.async_checkpoint_now(); }
  }
}
asio::awaitable<void> steps_by_next(async_test_session& session, ending_source& source) {
  auto next = [&] { return session.async_next(source); };
  co_await step_on(session, next);
}
asio::awaitable<void> steps_by_sequence(async_test_session& session, ending_source& source) {
  auto steps = session.async_steps(source);
  auto next = [&] { return steps.next(); };
  co_await step_on(session, next);
}
asio::awaitable<void> steps_by_run(async_test_session& session) {
  while (session.global_step() < last_step) {
    co_await session.async_run(session.global_step() + 1);
    if (session.global_step() == 3) { co_await session.async_checkpoint_now(); }
  }
}

/// Runs a complete session: start, steps with due checkpoints and a recovery, an explicit checkpoint, close. It
/// continues an interrupted session.
asio::awaitable<void> everything(async_test_session& session, ending_source& source, stepping how) {
  co_await asio::this_coro::reset_cancellation_state(asio::enable_total_cancellation());
  if (!session.is_started()) { co_await session.async_start(); }
  switch (how) {
    case stepping::by_next: co_await steps_by_next(session, source); break;
    case stepping::by_sequence: co_await steps_by_sequence(session, source); break;
    case stepping::by_run: co_await steps_by_run(session); break;
  }
  co_await session.async_close();
}
/// Returns the save cadence. A run of one batch repeats only that batch, so its checkpoint must be the one directly
/// before.
std::int64_t save_steps(stepping how) { return how == stepping::by_run ? 1 : 2; }

asio::awaitable<void> everything_within(async_rig& rig, stepping how, sw::async_options options) {
  auto session = rig.async(save_steps(how), {}, std::move(options));
  ending_source source{last_step};
  co_await everything(session, source, how);
}

/// Checks that a new session can continue from the checkpoints on disk to the end.
void check_restorable(async_rig& rig, stepping how) {
  rig.settle();
  const auto found = newest_in(rig.directory.path());
  if (found.step > 0) { CHECK(same(found.model, model_after(found.step))); }
  rig.model = adding_model();
  auto again = rig.when_free([&] { return rig.async(save_steps(how)); });
  ending_source source{last_step};
  rig.await(everything(again, source, how));
  CHECK(same(rig.model, model_after(last_step)));
}

}  // namespace

TEST_CASE("D-27 a session may be abandoned with its event loop after any number of handlers", "[session][async][abandon]") {
  const auto how = GENERATE(stepping::by_next, stepping::by_sequence, stepping::by_run);
  const bool is_inside = GENERATE(true, false);  // the session is in a coroutine frame of the loop, or outlives the loop
  const bool has_compute = GENERATE(false, true);
  log_capture log;
  int handlers = 0;
  for (bool has_ended = false; !has_ended; ++handlers) {
    async_rig rig;
    asio::thread_pool pool(1);
    rig.model.before = failing_batches{{2}};
    sw::async_options options;
    if (has_compute) { options.steps_on(pool.get_executor()); }
    {
      ending_source source{last_step};
      std::optional<async_test_session> outside;
      if (!is_inside) { outside.emplace(rig.async(save_steps(how), {}, options)); }
      asio::io_context loop;
      asio::co_spawn(loop, is_inside ? everything_within(rig, how, options) : everything(*outside, source, how),
                     [&](const std::exception_ptr& failure) {
                       CHECK_FALSE(failure);
                       has_ended = true;
                     });
      run_handlers(loop, handlers, has_ended);
    }
    check_restorable(rig, how);
  }
  CHECK(handlers > 10);
}

TEST_CASE("D-26 a session may be cancelled after any number of handlers, and then continues unchanged", "[session][async][cancel]") {
  const auto how = GENERATE(stepping::by_next, stepping::by_sequence, stepping::by_run);
  const auto kind = GENERATE(asio::cancellation_type::terminal, asio::cancellation_type::partial, asio::cancellation_type::total);
  const bool has_compute = GENERATE(false, true);
  log_capture log;
  int handlers = 0;
  int aborted = 0;
  for (bool has_ended = false; !has_ended; ++handlers) {
    async_rig rig;
    asio::thread_pool pool(1);
    story_type story;
    rig.model.before = failing_batches{{2}};
    sw::async_options options;
    if (has_compute) { options.steps_on(pool.get_executor()); }
    auto session = rig.async(save_steps(how), {&story}, options);
    ending_source source{last_step};
    const auto end = cancel_after(rig.io, handlers, everything(session, source, how), kind);
    has_ended = end.had_ended;
    REQUIRE(end.is_done);
    if (end.failure) {
      CHECK(was_aborted(end.failure));
      ++aborted;
      CHECK_FALSE(
          (how != stepping::by_run && session.is_started() && !session.is_closed() && session.should_stop() && source.peek() != nullptr));
      if (!session.is_closed()) { rig.await(everything(session, source, how)); }
    }
    CHECK(session.is_closed());
    CHECK(same(rig.model, model_after(last_step)));
    CHECK(newest_in(rig.directory.path()).step == last_step);
    CHECK(std::ranges::count(story, "begin") == 1);
    CHECK(std::ranges::count(story, "end 4") == 1);
    CHECK(session.metrics().recoveries == 1);
  }
  CHECK(aborted > 5);
}

TEST_CASE("a cancellation before the call does nothing at all", "[session][async][cancel]") {
  async_rig rig;
  auto session = rig.async(0);
  rig.await(session.async_start());
  asio::cancellation_signal cancel;
  std::exception_ptr failure;
  ending_source source;
  session.async_next(source,
                     asio::bind_cancellation_slot(
                         cancel.slot(), asio::bind_executor(rig.io.get_executor(), [&](std::exception_ptr how, auto) { failure = how; })));
  cancel.emit(asio::cancellation_type::total);
  rig.io.restart(), rig.io.run();
  CHECK(was_aborted(failure));
  CHECK(session.global_step() == 0);
  CHECK(source.next == 1);
}

TEST_CASE("a step on another executor that is under way when it is cancelled is delivered", "[session][async][cancel]") {
  async_rig rig;
  asio::thread_pool pool(1);
  gate in_step;
  rig.model.before = [&](std::int64_t batch) {
    if (batch == 2) { in_step.pass(); }
  };
  auto session = rig.async(0, {}, sw::async_options().steps_on(pool.get_executor()));
  rig.await(session.async_start());
  ending_source source;
  rig.await(session.async_next(source));
  in_step.close();
  asio::cancellation_signal cancel;
  std::optional<test_step> step;
  session.async_next(source,
                     asio::bind_cancellation_slot(
                         cancel.slot(), asio::bind_executor(rig.io.get_executor(), [&](std::exception_ptr, auto made) { step = made; })));
  rig.io.restart();
  std::jthread waits([&] {
    in_step.wait_for_somebody();
    asio::post(rig.io, [&] { cancel.emit(asio::cancellation_type::total); });
    asio::post(rig.io, [&] { in_step.open(); });
  });
  rig.io.run();
  REQUIRE(step);
  CHECK(step->global_step == 2);
}

TEST_CASE("abandoning calls no source, which may be destroyed before the session", "[session][async][abandon]") {
  struct telling_source : ending_source {
    int* asked = nullptr;

    std::uint64_t position() const { return ++*asked, ending_source::position(); }
  };
  async_rig rig;
  int asked = 0;
  telling_source source;
  source.asked = &asked;
  {
    auto session = rig.async(0);
    rig.await(session.async_start());
    rig.await(session.async_next(source));
    asked = 0;
  }
  CHECK(asked == 0);
}

TEST_CASE("abandoning waits for the step that is on another thread, and for no writing", "[session][async][abandon]") {
  log_capture log;
  async_rig rig;
  asio::thread_pool pool(1);
  gate disk;
  std::atomic<bool> is_stepped = false;
  gate in_step;
  ending_source source;  // used by the step for which the destructor of the session waits
  {
    auto session = rig.async(1, {}, sw::async_options().steps_on(pool.get_executor()));
    rig.await(session.async_start());
    wait_for_saves(session);
    disk.close();
    rig.files->before_each([&](const event& what) {
      if (what.kind == operation::write && what.path.find("ckpt-1") != std::string::npos) { disk.pass(); }
    });
    rig.await(session.async_next(source));
    static_cast<void>(session.hook<sw::checkpoint_saver_hook>().saver());  // begins the save, as the next operation of the session does
    disk.wait_for_somebody();
    in_step.close();
    rig.model.before = [&](std::int64_t) {
      in_step.pass();
      is_stepped = true;
    };
    session.async_next(
        source, asio::bind_executor(rig.io.get_executor(), [](const std::exception_ptr& failure, auto) { CHECK(was_aborted(failure)); }));
    rig.io.restart();
    rig.io.poll();
    in_step.wait_for_somebody();
    in_step.open();
  }  // the destructor waits here
  CHECK(is_stepped);
  disk.open();
  rig.io.run();
  rig.settle();
  CHECK(newest_in(rig.directory.path()).step == 1);
}

TEST_CASE("an executor that ends before it has done a step fails the step", "[session][async]") {
  log_capture log;
  async_rig rig;
  auto pool = std::make_unique<asio::thread_pool>(1);
  rig.setup.options.retry.max_attempts = 0;
  auto session = rig.async(0, {}, sw::async_options().steps_on(pool->get_executor()));
  rig.await(session.async_start());
  pool->stop();
  ending_source source;
  std::exception_ptr failure;
  session.async_next(source, asio::bind_executor(rig.io.get_executor(), [&](std::exception_ptr how, auto) { failure = how; }));
  rig.io.restart();
  rig.io.poll();
  pool.reset();
  rig.io.run();
  CHECK_THROWS_WITH(std::rethrow_exception(failure), ContainsSubstring("has ended"));
}
