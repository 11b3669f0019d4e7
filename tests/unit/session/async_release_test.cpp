// SPDX-License-Identifier: Apache-2.0
//
// Tests of an abandoned asynchronous session: its log messages, and the time when its directory is available to the
// next session.
#include "support/async_rig.hpp"
#include "support/catch.hpp"
#include "support/gate.hpp"
#include "support/log_capture.hpp"

#include <stepwell/session/async_session.hpp>

#include <algorithm>
#include <cstddef>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace sw = stepwell;
using namespace sw::test;

namespace {

/// A rig that blocks the write of the checkpoint of step 1 while the gate is closed.
struct held_rig : async_rig {
  gate disk;

  held_rig() {
    files->before_each([this](const event& what) {
      if (what.kind == operation::write && what.path.find("ckpt-1") != std::string::npos) { disk.pass(); }
    });
  }
  ~held_rig() {
    disk.open();
    pool->join();
  }

  /// Returns a session at step 1 whose checkpoint is being written.
  async_test_session saving(ending_source& source, std::vector<std::string>* story = nullptr) {
    auto session = async(1, {story});
    await(session.async_start());
    wait_for_saves(session);
    disk.close();
    await(session.async_next(source));
    static_cast<void>(session.hook<sw::checkpoint_saver_hook>().saver());  // begins the save, as the next operation of the session does
    disk.wait_for_somebody();
    return session;
  }
};

std::size_t complaints(const log_capture& log) { return log.count(sw::log_level::warning) + log.count(sw::log_level::error); }

}  // namespace

TEST_CASE("D-27 the release of an abandoned session can be awaited, and nothing is logged as a failure", "[session][async][abandon]") {
  const log_capture log;
  held_rig rig;
  ending_source source;
  std::optional<sw::session_release> handle;
  {
    const auto session = rig.saving(source);
    handle = session.release_handle();
  }
  CHECK_FALSE(handle->is_released());
  CHECK_THROWS_AS(rig.async(1), sw::failed_precondition_error);
  bool is_free = false;
  asio::co_spawn(rig.io, handle->async_wait(), [&](const std::exception_ptr& failure) { is_free = !failure; });
  rig.io.restart();
  rig.io.poll();
  CHECK_FALSE(is_free);
  rig.disk.open();
  rig.io.run();
  CHECK(is_free);
  CHECK(handle->is_released());
  rig.await(handle->async_wait());  // completes at once
  auto next = rig.async(1);
  rig.await(next.async_start());
  CHECK(next.global_step() == 1);
  CHECK(complaints(log) == 0);
}

TEST_CASE("D-27 a session that was never started, or is closed, is released", "[session][async][abandon]") {
  async_rig rig;
  std::optional<sw::session_release> handle;
  {
    const auto session = rig.async(1);
    handle = session.release_handle();
    CHECK_FALSE(handle->is_released());
  }
  CHECK(handle->is_released());
  auto session = rig.async(1);
  handle = session.release_handle();
  rig.await(session.async_start());
  CHECK_FALSE(handle->is_released());
  rig.await(session.async_close());
  CHECK(handle->is_released());
}

TEST_CASE("D-27 async_abandon calls on_error of the hooks, ends none, and releases the directory", "[session][async][abandon]") {
  held_rig rig;
  std::vector<std::string> story;
  ending_source source;
  auto session = rig.saving(source, &story);
  rig.disk.open();
  rig.await(session.async_abandon(std::make_exception_ptr(std::runtime_error("the body"))));
  CHECK(session.is_closed());
  CHECK(std::ranges::count(story, "error") == 1);
  CHECK(std::ranges::count(story, "end 1") == 0);
  rig.await(session.async_abandon());  // has no effect
  auto next = rig.async(1);            // no wait is necessary
  rig.await(next.async_start());
  CHECK(next.global_step() == 1);
}

TEST_CASE("async_with closes, or abandons and releases the directory before it rethrows", "[session][async][abandon]") {
  async_rig rig;
  std::vector<std::string> story;
  ending_source source{2};
  const auto run = [&](auto after) {
    auto session = rig.async(1, {&story});
    auto body = [&](async_test_session& one) -> asio::awaitable<void> {
      co_await one.async_start();
      const auto step = co_await one.async_next(source);
      CHECK(step);
      after();
    };
    rig.await(sw::async_with(session, body));
    CHECK(session.is_closed());
  };
  run([] {});
  CHECK(std::ranges::count(story, "end 1") == 1);
  CHECK(newest_in(rig.directory.path()).step == 1);
  run([] { throw sw::out_of_range_error("the data is at its end"); });  // ends the loop like the end of the data
  CHECK(std::ranges::count(story, "end 2") == 1);
  source.last = 3;
  CHECK_THROWS_WITH(run([] { throw std::runtime_error("the body"); }), "the body");
  CHECK(std::ranges::count(story, "error") == 1);
  CHECK(std::ranges::count(story, "end 3") == 0);
  auto next = rig.async(1);  // no wait is necessary
}

TEST_CASE("async_with releases the directory also after a cancellation", "[session][async][abandon][cancel]") {
  const log_capture log;
  async_rig rig;
  std::vector<std::string> story;
  int handlers = 0;
  for (bool has_ended = false; !has_ended; ++handlers) {
    ending_source source{2};
    auto session = rig.async(1, {&story});
    auto handle = session.release_handle();
    bool has_begun = false;
    auto body = [&](async_test_session& one) -> asio::awaitable<void> {
      has_begun = true;
      co_await one.async_start();
      for (;;) {
        const auto step = co_await one.async_next(source);
        if (!step) { break; }
      }
    };
    const auto end = cancel_after(rig.io, handlers, sw::async_with(session, body), asio::cancellation_type::terminal);
    has_ended = end.had_ended;
    REQUIRE(end.is_done);
    CHECK((!end.failure || was_aborted(end.failure)));
    CHECK((session.is_closed() || !has_begun));  // newer versions of Asio do not begin a coroutine that is cancelled already
    if (session.is_started()) { CHECK(handle.is_released()); }
    rig.io.restart();
    rig.model = adding_model();
  }
  CHECK(handlers > 5);
}
