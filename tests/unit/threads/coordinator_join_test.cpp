// SPDX-License-Identifier: Apache-2.0
#include "coordinator_rig.hpp"
#include "support/catch.hpp"
#include "support/log_capture.hpp"

#include <stepwell/base/error.hpp>

#include <chrono>
#include <future>
#include <stdexcept>
#include <stop_token>
#include <thread>
#include <utility>

namespace sw = stepwell;
using namespace std::chrono_literals;
using sw::test::failing;
using sw::test::log_capture;
using rig = sw::test::coordinator_rig;

TEST_CASE("COORD-5 a thread registered after the join began is left to the next one", "[session][coordinator]") {
  rig on;
  sw::thread_mark late("late");
  const auto first = on.start_stubborn("first");
  auto joined = std::async(std::launch::async, [&] { on.threads.join(); });
  REQUIRE(on.time->wait_for_pending(1));
  on.threads.register_thread(late.thread());
  on.held_up.open();
  joined.get();
  CHECK(late.thread().is_alive());
  on.threads.request_stop();
  CHECK_THROWS_WITH(on.threads.join({.stop_grace_period = 0s}), ContainsSubstring("still running: late"));
}

TEST_CASE("COORD-5 a thread that other code started is joined during the lifetime of its mark", "[session][coordinator]") {
  rig on;
  int done = 0;
  sw::thread_mark mark("reader");
  const auto seen = mark.thread();
  on.threads.register_thread(seen);
  CHECK(seen.name() == "reader");
  CHECK(seen.is_alive());
  std::jthread reader([&done, &on, mark = std::move(mark)] {
    on.held_up.pass();
    done = 1;
  });
  auto joined = std::async(std::launch::async, [&] {
    on.threads.join();
    return done;
  });
  REQUIRE(on.time->wait_for_pending(1));
  on.held_up.open();
  CHECK(joined.get() == 1);
  CHECK_FALSE(seen.is_alive());
}

TEST_CASE("COORD-6 join waits until its threads end, and does not request a stop", "[session][coordinator]") {
  rig on;
  auto first = on.start_stubborn("first");
  auto second = on.start_stubborn("second");
  auto joined = std::async(std::launch::async, [&] { on.threads.join(); });
  REQUIRE(on.time->wait_for_pending(1));
  on.time->advance(24h);  // the join waits until a stop is requested
  REQUIRE(on.time->wait_for_pending(1));
  CHECK_FALSE(on.threads.should_stop());
  CHECK_FALSE(on.threads.joined());
  on.held_up.open();
  joined.get();
  CHECK(on.threads.joined());
  CHECK_FALSE(on.threads.should_stop());
  CHECK_FALSE(first.is_alive());
  CHECK_FALSE(second.is_alive());
}

TEST_CASE("COORD-6 after a stop join waits for the grace period, as the clock shows it", "[session][coordinator]") {
  rig on;
  const auto slow = on.start_stubborn("slow");
  const auto other = on.start_stubborn("other");
  on.threads.request_stop();
  auto joined = std::async(std::launch::async, [&] { on.threads.join({.stop_grace_period = 60s}); });
  REQUIRE(on.time->wait_for_pending(1));
  on.time->advance(59s);
  CHECK_FALSE(on.threads.joined());
  on.time->advance(1s);
  CHECK_THROWS_WITH(joined.get(), ContainsSubstring("Coordinator stopped with threads still running: slow other"));
  CHECK(on.threads.joined());
  on.held_up.open();
  slow.join();
  other.join();
}

TEST_CASE("COORD-6 a thread that ends within the grace period is no straggler", "[session][coordinator]") {
  rig on;
  const auto slow = on.start_stubborn("slow");
  on.threads.request_stop();
  auto joined = std::async(std::launch::async, [&] { on.threads.join(); });
  REQUIRE(on.time->wait_for_pending(1));
  on.time->advance(119s);
  on.held_up.open();
  CHECK_NOTHROW(joined.get());
}

TEST_CASE("COORD-6 stragglers to be ignored are named in a log line only", "[session][coordinator]") {
  const log_capture log;
  rig on;
  const auto slow = on.start_stubborn("slow");
  on.threads.request_stop();
  CHECK_NOTHROW(on.threads.join({.stop_grace_period = 0s, .ignore_live_threads = true}));
  CHECK(log.contains(sw::log_level::warning, "Coordinator stopped with threads still running: slow"));
  on.held_up.open();
  slow.join();
}

TEST_CASE("COORD-6 the failure is thrown, and stragglers are logged", "[session][coordinator]") {
  const log_capture log;
  rig on;
  const auto slow = on.start_stubborn("slow");
  on.threads.request_stop(failing("the cause"));
  CHECK_THROWS_WITH(on.threads.join({.stop_grace_period = 0s}), "the cause");
  CHECK(log.contains(sw::log_level::warning, "still running: slow"));
  on.held_up.open();
  slow.join();
}

TEST_CASE("COORD-6 join accepts further threads, also registered ones", "[session][coordinator]") {
  rig on;
  sw::thread_mark mine("mine");
  const auto registered = on.start_stubborn("registered");
  auto joined = std::async(std::launch::async, [&] { on.threads.join({.threads = {registered, mine.thread(), mine.thread()}}); });
  REQUIRE(on.time->wait_for_pending(1));
  on.held_up.open();
  registered.join();
  CHECK_FALSE(on.threads.joined());
  { const auto ended = std::move(mine); }
  CHECK_NOTHROW(joined.get());
}

TEST_CASE("COORD-6 a thread that was never started is not waited for", "[session][coordinator]") {
  sw::coordinator threads;
  const auto idle = threads.make_thread("idle", [](std::stop_token) {});
  CHECK_FALSE(idle.is_alive());
  CHECK_NOTHROW(threads.join());
}

TEST_CASE("COORD-6 an exception of a straggler is logged, and does not affect a later stop", "[session][coordinator]") {
  const log_capture log;
  rig on;
  const auto slow = on.threads.start_thread("slow", [&](std::stop_token stop) {
    on.held_up.pass();
    throw std::runtime_error(stop.stop_requested() ? "an old failure" : "not stopped?");
  });
  on.threads.request_stop();
  on.threads.join({.stop_grace_period = 0s, .ignore_live_threads = true});
  on.threads.clear_stop();
  on.held_up.open();
  slow.join();
  CHECK_FALSE(on.threads.should_stop());
  CHECK(on.threads.failure() == nullptr);
  CHECK(log.contains(sw::log_level::error, "\"slow\" ended with: an old failure"));
}

TEST_CASE("COORD-7 COORD-8 a second join and a query throw the failure again", "[session][coordinator]") {
  sw::coordinator threads;
  CHECK_NOTHROW(threads.raise_requested_exception());
  CHECK_FALSE(threads.joined());
  const auto cause = failing("the cause");
  threads.request_stop(cause);
  CHECK_THROWS_WITH(threads.join(), "the cause");
  CHECK_THROWS_WITH(threads.join(), "the cause");
  CHECK_THROWS_WITH(threads.raise_requested_exception(), "the cause");
  CHECK(threads.failure() == cause);
  CHECK(threads.joined());
}

TEST_CASE("a coordinator that goes away stops its threads and waits for them", "[session][coordinator]") {
  bool is_told = false;
  {
    sw::coordinator threads;
    threads.start_thread("waits", [&](std::stop_token) {
      threads.wait_for_stop();
      is_told = true;
    });
  }
  CHECK(is_told);
}
