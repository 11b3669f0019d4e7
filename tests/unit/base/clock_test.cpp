// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"

#include <stepwell/base/clock.hpp>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace sw = stepwell;
using namespace std::chrono_literals;

namespace {

/// A thread that waits on a clock, and the outcome of the wait.
struct waiter {
  explicit waiter(sw::clock& source, sw::clock::time_point when)
      : thread_([this, &source, when] {
          std::unique_lock lock(mutex);
          outcome = source.wait_until(lock, condition, when, [this] { return ready; });
        }) {}
  ~waiter() { join(); }

  void notify() {
    {
      const std::lock_guard lock(mutex);
      ready = true;
    }
    condition.notify_all();
  }
  bool join() {
    if (thread_.joinable()) { thread_.join(); }
    return outcome.value();
  }

  std::mutex mutex;
  std::condition_variable condition;
  bool ready = false;
  std::optional<bool> outcome;

private:
  std::thread thread_;
};

}  // namespace

TEST_CASE("a manual clock stands still until it is moved", "[base][clock]") {
  sw::manual_clock clock(sw::clock::wall_time(1000s));
  const auto start = clock.now();
  CHECK(clock.now() == start);
  CHECK(clock.wall_now() == sw::clock::wall_time(1000s));
  clock.advance(1500ms);
  CHECK(clock.now() == start + 1500ms);
  CHECK(clock.wall_now() == sw::clock::wall_time(1001s) + 500ms);
}

TEST_CASE("alarms run in order of time, then of setting, each seeing its own time", "[base][clock]") {
  sw::manual_clock clock;
  const auto start = clock.now();
  std::vector<std::pair<char, sw::clock::duration>> ran;
  const auto note = [&](char name) { return [&, name] { ran.emplace_back(name, clock.now() - start); }; };
  clock.call_at(start + 2s, note('c'));
  clock.call_at(start + 1s, note('a'));
  clock.call_at(start + 1s, note('b'));
  clock.call_at(start + 3s, note('d'));
  CHECK(clock.pending() == 4);
  clock.advance(2s);
  CHECK(ran == std::vector<std::pair<char, sw::clock::duration>>{{'a', 1s}, {'b', 1s}, {'c', 2s}});
  CHECK(clock.pending() == 1);
}

TEST_CASE("an alarm that is already due waits for the next move, even one of no length", "[base][clock]") {
  sw::manual_clock clock;
  int ran = 0;
  clock.call_at(clock.now() - 1s, [&] { ++ran; });
  clock.call_at(sw::clock::time_point::min(), [&] { ++ran; });
  CHECK(ran == 0);
  const auto before = clock.now();
  clock.advance(0s);
  CHECK(ran == 2);
  CHECK(clock.now() == before);
}

TEST_CASE("an alarm set by an alarm runs in the same move if its time has come", "[base][clock]") {
  sw::manual_clock clock;
  const auto start = clock.now();
  std::vector<sw::clock::duration> ticks;
  std::function<void()> tick = [&] {
    ticks.push_back(clock.now() - start);
    clock.call_at(clock.now() + 1s, tick);
  };
  clock.call_at(start + 1s, tick);
  clock.advance(3500ms);
  CHECK(ticks == std::vector<sw::clock::duration>{1s, 2s, 3s});
  CHECK(clock.now() == start + 3500ms);
  CHECK(clock.pending() == 1);
}

TEST_CASE("a cancelled alarm does not run", "[base][clock]") {
  sw::manual_clock clock;
  int ran = 0;
  const auto id = clock.call_at(clock.now() + 1s, [&] { ++ran; });
  clock.call_at(clock.now() + 1s, [&] { ran += 10; });
  clock.cancel(id);
  clock.cancel(id);  // a second cancel has no effect
  clock.cancel(12345);
  clock.advance(1s);
  CHECK(ran == 10);
}

TEST_CASE("an action may cancel itself and others from within", "[base][clock]") {
  sw::manual_clock clock;
  int ran = 0;
  sw::clock::alarm_id first = 0;
  sw::clock::alarm_id second = 0;
  first = clock.call_at(clock.now() + 1s, [&] {
    ++ran;
    clock.cancel(first);
    clock.cancel(second);
  });
  second = clock.call_at(clock.now() + 1s, [&] { ran += 10; });
  clock.advance(2s);
  CHECK(ran == 1);
  CHECK(clock.pending() == 0);
}

TEST_CASE("cancel waits for an action that is running", "[base][clock]") {
  sw::manual_clock clock;
  std::atomic<bool> started = false;
  std::atomic<bool> may_end = false;
  std::atomic<bool> ended = false;
  const auto id = clock.call_at(clock.now() + 1s, [&] {
    started = true;
    while (!may_end) { std::this_thread::yield(); }
    ended = true;
  });
  std::thread mover([&] { clock.advance(1s); });
  while (!started) { std::this_thread::yield(); }
  std::thread releaser([&] { may_end = true; });
  clock.cancel(id);
  CHECK(ended);
  mover.join();
  releaser.join();
}

TEST_CASE("two threads may move one manual clock: each alarm runs once, one at a time", "[base][clock]") {
  sw::manual_clock clock;
  const auto start = clock.now();
  std::atomic<int> inside = 0;
  std::atomic<int> ran = 0;
  std::atomic<bool> overlapped = false;
  for (int i = 1; i <= 200; ++i) {
    clock.call_at(start + i * 1ms, [&] {
      if (++inside != 1) { overlapped = true; }
      std::this_thread::yield();
      ++ran;
      --inside;
    });
  }
  std::thread other([&] {
    for (int i = 0; i < 100; ++i) { clock.advance(1ms); }
  });
  for (int i = 0; i < 100; ++i) { clock.advance(1ms); }
  other.join();
  CHECK(ran == 200);
  CHECK_FALSE(overlapped);
  CHECK(clock.now() == start + 200ms);
}

TEST_CASE("an alarm is forgotten with its owner", "[base][clock]") {
  const auto clock = std::make_shared<sw::manual_clock>();
  int ran = 0;
  {
    sw::alarm first(clock, clock->now() + 1s, [&] { ++ran; });
    sw::alarm moved(std::move(first));
    CHECK(clock->pending() == 1);
    moved = sw::alarm(clock, clock->now() + 2s, [&] { ran += 10; });
    CHECK(clock->pending() == 1);
  }
  CHECK(clock->pending() == 0);
  clock->advance(5s);
  CHECK(ran == 0);
}

TEST_CASE("a waiting thread counts as pending, and time wakes it", "[base][clock]") {
  sw::manual_clock clock;
  waiter waits(clock, clock.now() + 5s);
  REQUIRE(clock.wait_for_pending(1));
  clock.advance(4s);
  CHECK(clock.pending() == 1);
  clock.advance(1s);
  CHECK_FALSE(waits.join());
  CHECK(clock.pending() == 0);
}

TEST_CASE("a notified thread continues at the same time, and leaves no alarm behind", "[base][clock]") {
  sw::manual_clock clock;
  const auto start = clock.now();
  waiter waits(clock, start + 5s);
  REQUIRE(clock.wait_for_pending(1));
  waits.notify();
  CHECK(waits.join());
  CHECK(clock.now() == start);
  CHECK(clock.pending() == 0);
}

TEST_CASE("waiting for a time that has come returns at once", "[base][clock]") {
  sw::manual_clock clock;
  std::mutex mutex;
  std::condition_variable condition;
  std::unique_lock lock(mutex);
  CHECK_FALSE(clock.wait_until(lock, condition, clock.now()));
  CHECK(lock.owns_lock());
  clock.sleep_until(clock.now() - 1h);
  clock.sleep_for(0s);
}

TEST_CASE("no wake-up is lost when time moves just as a thread begins to wait", "[base][clock]") {
  for (int round = 0; round < 300; ++round) {
    sw::manual_clock clock;
    const auto when = clock.now() + 1s;
    waiter waits(clock, when);
    clock.advance(1s);  // before, during or after the start of the wait
    CHECK_FALSE(waits.join());
  }
}

TEST_CASE("no wake-up is lost between a notification and the time", "[base][clock]") {
  for (int round = 0; round < 200; ++round) {
    sw::manual_clock clock;
    waiter waits(clock, clock.now() + 1s);
    std::thread mover([&] { clock.advance(1s); });
    waits.notify();
    (void)waits.join();  // either outcome is correct; both threads must end
    mover.join();
    CHECK(clock.pending() == 0);
  }
}

TEST_CASE("many sleepers wake each at their own time", "[base][clock]") {
  sw::manual_clock clock;
  const auto start = clock.now();
  std::atomic<int> awake = 0;
  std::vector<std::thread> sleepers;
  for (int i = 1; i <= 8; ++i) {
    sleepers.emplace_back([&, i] {
      clock.sleep_until(start + i * 1s);
      ++awake;
    });
  }
  REQUIRE(clock.wait_for_pending(8));
  clock.advance(4s);
  while (awake < 4) { std::this_thread::yield(); }
  CHECK(clock.pending() == 4);
  clock.advance(4s);
  for (auto& sleeper : sleepers) { sleeper.join(); }
  CHECK(awake == 8);
}

TEST_CASE("the machine's clock runs, cancels and waits like the held one", "[base][clock]") {
  const auto clock = sw::system_clock();
  CHECK(clock == sw::system_clock());
  std::mutex mutex;
  std::condition_variable condition;
  std::vector<int> ran;
  const auto note = [&](int what) {
    return [&, what] {
      const std::lock_guard lock(mutex);
      ran.push_back(what);
      condition.notify_all();
    };
  };
  const auto now = clock->now();
  const auto far = clock->call_at(now + 1h, note(1));
  clock->call_at(now, note(2));
  clock->call_at(now - 1s, note(3));
  {
    std::unique_lock lock(mutex);
    REQUIRE(clock->wait_until(lock, condition, now + 60s, [&] { return ran.size() == 2; }));
    CHECK_FALSE(clock->wait_until(lock, condition, now, [&] { return false; }));
  }
  clock->cancel(far);
  CHECK((ran == std::vector<int>{2, 3} || ran == std::vector<int>{3, 2}));  // the second may run first
}

TEST_CASE("an alarm of the machine's clock may cancel itself", "[base][clock]") {
  const auto clock = sw::system_clock();
  std::mutex mutex;
  std::condition_variable condition;
  bool done = false;
  sw::clock::alarm_id id = 0;
  std::unique_lock lock(mutex);
  id = clock->call_at(clock->now(), [&] {
    const std::lock_guard held(mutex);
    clock->cancel(id);
    done = true;
    condition.notify_all();
  });
  CHECK(clock->wait_until(lock, condition, clock->now() + 60s, [&] { return done; }));
  lock.unlock();
  clock->cancel(id);
}
