// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"

#include <stepwell/base/error.hpp>
#include <stepwell/threads/coordinator.hpp>

#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace sw = stepwell;
using namespace std::chrono_literals;

namespace {

struct loop_rig {
  std::shared_ptr<sw::manual_clock> time = std::make_shared<sw::manual_clock>();
  sw::clock::time_point start = time->now();
  /// Used only by the looper thread until `threads.join()`.
  std::vector<std::chrono::seconds> calls;
  sw::coordinator threads{time};

  void note() { calls.push_back(std::chrono::duration_cast<std::chrono::seconds>(time->now() - start)); }
};

}  // namespace

TEST_CASE("LOOP-1 a looper calls at once and then at every interval, until the stop", "[session][looper_thread]") {
  loop_rig on;
  const auto looper = sw::looper_thread::loop(on.threads, 10s, [&] {
    on.note();
    if (on.calls.size() == 3) { on.threads.request_stop(); }
  });
  CHECK(looper.thread().name() == "LooperThread");
  REQUIRE(on.time->wait_for_pending(1));  // after the first call
  on.time->advance(4s);                   // not due yet
  on.time->advance(6s);
  REQUIRE(on.time->wait_for_pending(1));
  on.time->advance(10s);
  on.threads.join();
  CHECK(on.calls == std::vector{0s, 10s, 20s});
  CHECK_FALSE(looper.thread().is_alive());
}

TEST_CASE("LOOP-1 a late call does not shift the others: it catches up", "[session][looper_thread]") {
  loop_rig on;
  const auto looper = sw::looper_thread::loop(on.threads, 10s, [&] {
    on.note();
    if (on.calls.size() == 1) { on.time->advance(25s); }  // a slow call: the calls due at 10 s and 20 s are late
    if (on.calls.size() == 4) { on.threads.request_stop(); }
  });
  REQUIRE(on.time->wait_for_pending(1));
  on.time->advance(5s);
  on.threads.join();
  CHECK(on.calls == std::vector{0s, 25s, 25s, 30s});
}

TEST_CASE("LOOP-1 without an interval a looper calls back to back", "[session][looper_thread]") {
  loop_rig on;
  const auto looper = sw::looper_thread::loop(on.threads, std::nullopt, [&] {
    on.note();
    if (on.calls.size() == 100) { on.threads.request_stop(); }
  });
  on.threads.join();
  CHECK(on.calls == std::vector(100, 0s));
}

TEST_CASE("LOOP-1 start_loop comes before the first call, stop_loop after the last", "[session][looper_thread]") {
  loop_rig on;
  std::string story;
  sw::looper_thread looper(on.threads, 1s,
                           [&] {
                             story += "run ";
                             on.threads.request_stop();
                           },
                           {.name = "teller", .start_loop = [&] { story += "start "; }, .stop_loop = [&] { story += "stop"; }});
  CHECK_FALSE(looper.thread().is_alive());
  CHECK(story.empty());
  looper.start();
  on.threads.join();
  CHECK(story == "start run stop");
  CHECK(looper.thread().name() == "teller");
}

TEST_CASE("LOOP-1 a call that throws asks for a stop, and stop_loop is left out", "[session][looper_thread]") {
  loop_rig on;
  bool is_told = false;
  const auto looper =
      sw::looper_thread::loop(on.threads, 1s, [] { throw std::runtime_error("broken"); }, {.stop_loop = [&] { is_told = true; }});
  CHECK_THROWS_WITH(on.threads.join(), "broken");
  CHECK(on.threads.should_stop());
  CHECK_FALSE(is_told);
}

TEST_CASE("LOOP-1 a looper that waits is woken by the stop", "[session][looper_thread]") {
  loop_rig on;
  const auto looper = sw::looper_thread::loop(on.threads, std::chrono::hours(1), [&] { on.note(); });
  REQUIRE(on.time->wait_for_pending(1));
  on.threads.request_stop();
  on.threads.join();
  CHECK(on.calls == std::vector{0s});
}

TEST_CASE("LOOP-1 a looper without a function, or with a negative interval, is refused", "[session][looper_thread]") {
  loop_rig on;
  CHECK_THROWS_AS(sw::looper_thread(on.threads, 1s, nullptr), sw::invalid_argument_error);
  CHECK_THROWS_AS(sw::looper_thread(on.threads, -1s, [] {}), sw::invalid_argument_error);
}
