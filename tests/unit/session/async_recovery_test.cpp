// SPDX-License-Identifier: Apache-2.0
//
// Tests of recoveries of an asynchronous session. The test controls the time, and the event loop stays free meanwhile.
#include "support/async_rig.hpp"
#include "support/catch.hpp"
#include "support/log_capture.hpp"

#include <boost/asio/bind_executor.hpp>
#include <boost/asio/post.hpp>

#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace sw = stepwell;
using namespace sw::test;
using namespace std::chrono_literals;
using story_type = std::vector<std::string>;

namespace {

/// The result of an operation. `has_ended` is false while it runs.
struct outcome {
  bool has_ended = false;
  std::exception_ptr failure;
  std::optional<test_step> step;
};

/// A session whose first run of batch 2 fails, and which then waits 100 ms on a manual clock before it recovers.
struct waiting_rig : async_rig {
  story_type story;
  ending_source source;
  std::shared_ptr<sw::manual_clock> own = std::make_shared<sw::manual_clock>();  // used only by the session, not by a writer
  asio::cancellation_signal cancel;

  waiting_rig() {
    setup.options.retry = {.jitter = 0};
    setup.options.clock = own;
    model.before = failing_batches{{2}};
  }
  async_test_session started() {
    auto session = async(1, {&story});
    await(session.async_start());
    await(session.async_next(source));
    return session;
  }
  /// Starts the step that fails. Returns when the session waits.
  outcome& fail(async_test_session& session, outcome& how) {
    next(session, how);
    io.restart();
    while (own->pending() == 0) { REQUIRE(io.run_one() == 1); }
    CHECK_FALSE(how.has_ended);
    return how;
  }
  void next(async_test_session& session, outcome& how) {
    session.async_next(source, asio::bind_cancellation_slot(
                                   cancel.slot(), asio::bind_executor(io.get_executor(), [&how](std::exception_ptr failure, auto step) {
                                     how = {true, failure, step};
                                   })));
  }
  void run() {
    io.restart();
    io.run();
  }
};

}  // namespace

TEST_CASE("D-2 the wait before a recovery is awaited: the loop is free, and the clock says when it is over", "[session][async]") {
  log_capture log;
  waiting_rig rig;
  auto session = rig.started();
  outcome how;
  rig.fail(session, how);
  bool is_free = false;
  asio::post(rig.io, [&] { is_free = true; });
  rig.io.poll();
  CHECK(is_free);
  rig.own->advance(99ms);
  rig.io.poll();
  CHECK_FALSE(how.has_ended);
  rig.own->advance(1ms);
  rig.run();
  REQUIRE(how.step);
  CHECK(how.step->attempt == 2);
  CHECK(how.step->global_step == 2);
  CHECK_FALSE(how.step->rolled_back_from);
  CHECK(session.metrics().recoveries == 1);
}

TEST_CASE("a cancelled wait leaves the recovery due: the next operation waits for the rest of it", "[session][async][cancel]") {
  const auto kind = GENERATE(asio::cancellation_type::terminal, asio::cancellation_type::partial, asio::cancellation_type::total);
  log_capture log;
  waiting_rig rig;
  auto session = rig.started();
  outcome how;
  rig.fail(session, how);
  rig.cancel.emit(kind);
  rig.run();
  CHECK(how.has_ended);
  CHECK(was_aborted(how.failure));
  CHECK_FALSE(session.should_stop());
  CHECK_THROWS_WITH(rig.await(session.async_checkpoint_now()), ContainsSubstring("not recovered yet"));
  CHECK(rig.story.back() == "error");
  how = {};
  rig.own->advance(60ms);
  rig.fail(session, how);
  rig.own->advance(40ms);
  rig.run();
  REQUIRE(how.step);
  CHECK(how.step->attempt == 2);
  CHECK(session.metrics().recoveries == 1);  // no second recovery was started
  CHECK(rig.await(all_steps(session, rig.source)) == std::vector<std::int64_t>{3, 4, 5});
  CHECK(same(rig.model, model_after(5)));
}

TEST_CASE("a stop ends the wait before a recovery, and the loop", "[session][async]") {
  log_capture log;
  waiting_rig rig;
  auto session = rig.started();
  outcome how;
  rig.fail(session, how);
  session.request_stop("that will do");
  rig.run();
  CHECK(how.has_ended);
  CHECK_FALSE(how.failure);
  CHECK_FALSE(how.step);
  rig.await(session.async_close());
  CHECK(newest_in(rig.directory.path()).step == 1);
}

TEST_CASE("a session that is destroyed while it waits ends the wait with operation_aborted", "[session][async]") {
  log_capture log;
  waiting_rig rig;
  outcome how;
  {
    auto session = rig.started();
    rig.fail(session, how);
  }
  rig.run();
  CHECK(was_aborted(how.failure));
  CHECK(rig.story.back() == "error");  // no hook received `end`
}

TEST_CASE("D-2 an awaited session gives up as a blocking one does", "[session][async]") {
  log_capture log;
  async_rig rig;
  rig.setup.options.retry = {.max_attempts = 3, .initial_backoff = 0};
  rig.model.before = [](std::int64_t) { throw sw::unavailable_error("still not"); };
  ending_source source;
  auto session = rig.async(0);
  CHECK_THROWS_WITH(rig.await(whole_life(session, source)), ContainsSubstring("still not"));
  CHECK(session.metrics().recoveries == 3);
  CHECK(session.should_stop());
  CHECK(source.next == 1);
  rig.await(session.async_close());
}

TEST_CASE("REC-2 an awaited run is repeated with the same arguments", "[session][async]") {
  log_capture log;
  async_rig rig;
  std::vector<std::int64_t> seen;
  rig.model.before = failing_batches{{7, 7}, &seen};
  auto session = rig.async(0);
  rig.await(session.async_start());
  CHECK(rig.await(session.async_run(std::int64_t{7})).loss == 7);
  CHECK(seen == std::vector<std::int64_t>{7, 7, 7});
}

TEST_CASE("a rollback that a hook requested leaves the batch out and reports the step from which it went back", "[session][async]") {
  log_capture log;
  async_rig rig;
  ending_source source;
  scripted_hook hook;
  hook.after = [times = 1](auto& context) mutable {
    if (context.global_step() == 4 && times-- > 0) { context.request_rollback({.why = "bad", .skip_batch = true}); }
  };
  auto session = rig.async(2, hook);
  rig.await(session.async_start());
  std::vector<std::int64_t> batches;
  std::vector<std::optional<std::int64_t>> from;
  for (;;) {
    const auto step = rig.await(session.async_next(source));
    if (!step) { break; }
    batches.push_back(step->value.batch);
    from.push_back(step->rolled_back_from);
  }
  CHECK(batches == std::vector<std::int64_t>{1, 2, 3, 3, 5});
  CHECK(from[3] == 4);
  CHECK(session.metrics().rollbacks == 1);
}

TEST_CASE("a failed background save comes out of the awaited step at whose boundary it is delivered", "[session][async]") {
  log_capture log;
  async_rig rig;
  ending_source source;
  auto session = rig.async(2);
  rig.await(session.async_start());
  wait_for_saves(session);
  rig.files->inject({.kind = operation::sync, .path_contains = "ckpt-2"});
  rig.await(session.async_next(source));
  rig.await(session.async_next(source));
  wait_for_saves(session);
  CHECK_THROWS_AS(rig.await(session.async_next(source)), sw::error);
  CHECK(session.global_step() == 3);
}
