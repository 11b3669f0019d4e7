// SPDX-License-Identifier: Apache-2.0
#include "coordinator_rig.hpp"
#include "support/catch.hpp"
#include "support/log_capture.hpp"

#include <stepwell/base/error.hpp>

#include <chrono>
#include <exception>
#include <future>
#include <stdexcept>
#include <stop_token>
#include <type_traits>
#include <utility>
#include <vector>

namespace sw = stepwell;
using namespace std::chrono_literals;
using sw::test::failing;
using sw::test::log_capture;
using rig = sw::test::coordinator_rig;

static_assert(!std::is_move_constructible_v<sw::coordinator>, "threads and hooks refer to it");
static_assert(noexcept(std::declval<const sw::coordinator&>().should_stop()));

TEST_CASE("COORD-1 the end of the data requests a clean stop by default", "[session][coordinator]") {
  sw::coordinator threads;
  threads.request_stop(std::make_exception_ptr(sw::out_of_range_error("end of data")));
  CHECK(threads.should_stop());
  CHECK(threads.failure() == nullptr);
  CHECK_NOTHROW(threads.join());
}

TEST_CASE("COORD-1 which exceptions are clean stops can be chosen, by kind or by a predicate", "[session][coordinator]") {
  const auto end = std::make_exception_ptr(sw::out_of_range_error("end of data"));
  sw::coordinator none(sw::system_clock(), {});
  none.request_stop(end);
  CHECK_THROWS_AS(none.join(), sw::out_of_range_error);

  sw::coordinator kinds(sw::system_clock(), {sw::errc::cancelled, sw::errc::aborted});
  kinds.request_stop(std::make_exception_ptr(sw::aborted_error("moved")));
  CHECK_NOTHROW(kinds.raise_requested_exception());
  kinds.request_stop(end);
  CHECK_THROWS_AS(kinds.raise_requested_exception(), sw::out_of_range_error);

  sw::coordinator any(sw::system_clock(), sw::exception_set([](const std::exception_ptr&) { return true; }));
  any.request_stop(failing("whatever"));
  CHECK(any.should_stop());
  CHECK_NOTHROW(any.join());
}

TEST_CASE("COORD-2 the first failure is the error, later ones are suppressed (D-16)", "[session][coordinator]") {
  const log_capture log;
  sw::coordinator threads;
  const auto second = failing("second");
  const auto third = failing("third");
  CHECK_FALSE(threads.should_stop());
  threads.request_stop(failing("first"));
  threads.request_stop(second);
  threads.request_stop();
  threads.request_stop(third);
  CHECK_THROWS_WITH(threads.raise_requested_exception(), "first");
  CHECK(threads.suppressed() == std::vector{second, third});
  CHECK(log.contains(sw::log_level::info, "Error reported to Coordinator: first"));
}

TEST_CASE("COORD-2 a clean stop does not hide a later failure (D-16)", "[session][coordinator]") {
  sw::coordinator threads;
  threads.request_stop();
  CHECK(threads.failure() == nullptr);
  threads.request_stop(failing("late"));
  CHECK_THROWS_WITH(threads.join(), "late");
  CHECK(threads.suppressed().empty());
}

TEST_CASE("COORD-2 a failure that is reported after the join is thrown to the reporter, and not recorded", "[session][coordinator]") {
  sw::coordinator threads;
  threads.join();
  CHECK(threads.joined());
  CHECK_THROWS_WITH(threads.request_stop(failing("too late")), "too late");
  CHECK_FALSE(threads.should_stop());
  CHECK(threads.failure() == nullptr);
  CHECK_THROWS_WITH(threads.stop_on_exception([] { throw std::runtime_error("too late as well"); }), "too late as well");
  threads.request_stop();
  CHECK(threads.should_stop());
}

TEST_CASE("COORD-3 wait_for_stop returns whether a stop came in time", "[session][coordinator]") {
  rig on;
  auto waited = std::async(std::launch::async, [&] { return on.threads.wait_for_stop(on.time->now() + 5s); });
  REQUIRE(on.time->wait_for_pending(1));
  on.time->advance(5s);
  CHECK_FALSE(waited.get());
  CHECK_FALSE(on.threads.wait_for_stop(on.time->now()));

  waited = std::async(std::launch::async, [&] { return on.threads.wait_for_stop(on.time->now() + 5s); });
  auto for_ever = std::async(std::launch::async, [&] { on.threads.wait_for_stop(); });
  REQUIRE(on.time->wait_for_pending(2));
  on.threads.request_stop();
  CHECK(waited.get());
  for_ever.get();
  CHECK(on.threads.wait_for_stop(on.time->now()));
}

TEST_CASE("COORD-4 a coordinator whose stop was cleared is like a new one, at the same address", "[session][coordinator]") {
  sw::coordinator threads;
  const auto before = threads.get_token();
  threads.request_stop(failing("first"));
  threads.request_stop(failing("second"));
  CHECK(before.stop_requested());
  CHECK_THROWS_WITH(threads.join(), "first");
  threads.clear_stop();
  CHECK_FALSE(threads.should_stop());
  CHECK_FALSE(threads.joined());
  CHECK(threads.failure() == nullptr);
  CHECK(threads.suppressed().empty());
  CHECK(before.stop_requested());
  const auto after = threads.get_token();
  CHECK_FALSE(after.stop_requested());
  threads.request_stop(failing("another"));
  CHECK(after.stop_requested());
  CHECK_THROWS_WITH(threads.join(), "another");
}

TEST_CASE("COORD-4 threads stay registered when a stop is cleared", "[session][coordinator]") {
  rig on;
  const auto thread = on.start_stubborn("stubborn");
  on.threads.request_stop();
  on.threads.clear_stop();
  on.threads.request_stop();
  CHECK_THROWS_WITH(on.threads.join({.stop_grace_period = 0s}), ContainsSubstring("still running: stubborn"));
  on.held_up.open();
  thread.join();
}

TEST_CASE("COORD-4 a wait for a stop ends even if the stop is cleared at once", "[session][coordinator]") {
  rig on;
  auto waited = std::async(std::launch::async, [&] { return on.threads.wait_for_stop(on.time->now() + 5s); });
  REQUIRE(on.time->wait_for_pending(1));
  on.threads.request_stop();
  on.threads.clear_stop();
  CHECK(waited.get());
}

TEST_CASE("COORD-9 stop_on_exception reports an exception, and does not pass it on", "[session][coordinator]") {
  sw::coordinator threads;
  threads.stop_on_exception([] {});
  CHECK_FALSE(threads.should_stop());
  CHECK_NOTHROW(threads.stop_on_exception([] { throw std::runtime_error("inside"); }));
  CHECK(threads.should_stop());
  CHECK_NOTHROW(threads.stop_on_exception([] { throw 42; }));
  CHECK(threads.suppressed().size() == 1);
  CHECK_THROWS_WITH(threads.join(), "inside");
}

TEST_CASE("COORD-9 an exception of a thread of the coordinator stops the others", "[session][coordinator]") {
  rig on;
  bool is_told = false;
  on.threads.start_thread("waits", [&](std::stop_token) {
    on.threads.wait_for_stop();
    is_told = true;
  });
  on.threads.start_thread("fails", [](std::stop_token) { throw std::runtime_error("broken"); });
  CHECK_THROWS_WITH(on.threads.join(), "broken");
  CHECK(is_told);
}

TEST_CASE("a cancelled wait is no failure after a stop (D-16), and is one before", "[session][coordinator]") {
  sw::coordinator after;
  after.start_thread("waits", [&](std::stop_token) {
    after.wait_for_stop();
    throw sw::cancelled_error("the queue was closed");
  });
  after.request_stop();
  CHECK_NOTHROW(after.join());

  sw::coordinator before;
  before.start_thread("cancelled", [](std::stop_token) { throw sw::cancelled_error("who did this?"); });
  CHECK_THROWS_AS(before.join(), sw::cancelled_error);
}

TEST_CASE("COORD-10 a report without an exception is a failure all the same", "[session][coordinator]") {
  sw::coordinator threads;
  threads.request_stop_on_current_exception();
  CHECK(threads.should_stop());
  CHECK_THROWS_AS(threads.join(), sw::invalid_argument_error);

  sw::coordinator caught;
  try {
    throw std::runtime_error("at hand");
  } catch (...) { caught.request_stop_on_current_exception(); }
  CHECK_THROWS_WITH(caught.join(), "at hand");
}

TEST_CASE("a token's callback may use the coordinator", "[session][coordinator]") {
  sw::coordinator threads;
  bool is_stopped = false;
  const auto token = threads.get_token();
  std::stop_callback watching(token, [&] {
    is_stopped = threads.should_stop();
    threads.request_stop(failing("from a callback"));
  });
  threads.request_stop();
  CHECK(is_stopped);
  CHECK_THROWS_WITH(threads.join(), "from a callback");
}
