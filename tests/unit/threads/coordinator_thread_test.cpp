// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"
#include "support/gate.hpp"
#include "support/log_capture.hpp"

#include <stepwell/base/error.hpp>
#include <stepwell/threads/coordinator.hpp>

#include <chrono>
#include <memory>
#include <stdexcept>
#include <stop_token>
#include <type_traits>
#include <utility>
#include <vector>

namespace sw = stepwell;
using sw::test::log_capture;

static_assert(!std::is_copy_constructible_v<sw::thread_mark>, "a thread has one end");

TEST_CASE("a thread is alive from its start to the end of its body", "[session][coordinated_thread]") {
  sw::test::gate held_up;
  held_up.close();
  const auto used = std::make_shared<int>(0);
  sw::coordinated_thread thread("waits", [&, used] { held_up.pass(); });
  CHECK_FALSE(thread.is_alive());
  thread.join();  // never started: returns at once
  thread.start();
  CHECK(thread.is_alive());
  held_up.open();
  thread.join();
  CHECK_FALSE(thread.is_alive());
  CHECK(used.use_count() == 1);  // the body and its captures are destroyed
  CHECK(thread == sw::coordinated_thread(thread));
}

TEST_CASE("a thread without an owner runs to its end", "[session][coordinated_thread]") {
  sw::test::gate held_up;
  held_up.close();
  sw::thread_mark mark("done");
  const auto done = mark.thread();
  {
    const auto kept = std::make_shared<sw::thread_mark>(std::move(mark));
    sw::coordinated_thread dropped("dropped", [&held_up, kept] { held_up.pass(); });
    dropped.start();
  }
  CHECK(done.is_alive());
  held_up.open();
  done.join();
}

TEST_CASE("a marked thread is alive as long as its mark", "[session][coordinated_thread]") {
  auto mark = std::make_unique<sw::thread_mark>("marked");
  const auto thread = mark->thread();
  CHECK(thread.is_alive());
  CHECK(thread == mark->thread());
  sw::thread_mark moved(std::move(*mark));
  mark.reset();
  CHECK(thread.is_alive());
  { const auto ended = std::move(moved); }
  CHECK_FALSE(thread.is_alive());
  thread.join();
}

TEST_CASE("a thread is started once, and has something to do", "[session][coordinated_thread]") {
  sw::coordinated_thread thread("once", [] {});
  CHECK(thread.name() == "once");
  thread.start();
  CHECK_THROWS_AS(thread.start(), sw::failed_precondition_error);
  thread.join();
  CHECK_THROWS_AS(thread.start(), sw::failed_precondition_error);
  CHECK_THROWS_AS(sw::thread_mark("marked").thread().start(), sw::failed_precondition_error);
  CHECK_THROWS_AS(sw::coordinated_thread("empty", nullptr), sw::invalid_argument_error);
}

TEST_CASE("a thread without a coordinator ends alone when it throws", "[session][coordinated_thread]") {
  const log_capture log;
  bool is_told = false;
  sw::coordinated_thread thread("alone", [] { throw std::runtime_error("lost"); });
  thread.on_end([&] { is_told = true; });
  thread.start();
  thread.join();
  CHECK(is_told);
  CHECK(log.contains(sw::log_level::error, "the thread \"alone\" ended with: lost"));
  is_told = false;
  thread.on_end([&] { is_told = true; });
  CHECK(is_told);
}

TEST_CASE("LOOP-1 a thread that waits for the stop until its next call calls at fixed times", "[session][coordinated_thread]") {
  using namespace std::chrono_literals;
  const auto time = std::make_shared<sw::manual_clock>();
  const auto start = time->now();
  std::vector<std::chrono::seconds> calls;  // used only by the thread until `threads.join()`
  sw::coordinator threads(time);
  threads.start_thread("caller", [&](const std::stop_token& stop) {
    for (auto next = start; !stop.stop_requested() && !threads.wait_for_stop(next); next += 10s) {
      calls.push_back(std::chrono::duration_cast<std::chrono::seconds>(time->now() - start));
    }
  });
  REQUIRE(time->wait_for_pending(1));  // after the first call
  time->advance(4s);                   // not due yet
  time->advance(21s);                  // the calls due at 10 s and at 20 s are late
  REQUIRE(time->wait_for_pending(1));
  time->advance(5s);
  REQUIRE(time->wait_for_pending(1));
  threads.request_stop();
  threads.join();
  CHECK(calls == std::vector{0s, 25s, 25s, 30s});
}
