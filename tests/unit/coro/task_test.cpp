// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"

#include <stepwell/coro/detail/sync_wait.hpp>
#include <stepwell/coro/detail/task.hpp>

#include <concepts>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using stepwell::task;
using stepwell::coro::sync_wait;

static_assert(std::movable<task<int>> && !std::copy_constructible<task<int>>);

namespace {

task<int> number(int value) { co_return value; }

task<int> sum(int a, int b) {
  const int first = co_await number(a);
  const int second = co_await number(b);
  co_return first + second;
}

task<> broken(std::string why) {
  throw std::runtime_error(why);
  co_return;
}

task<std::string> told_what_broke() {
  try {
    co_await broken("a pipe that is longer than the small buffer");
  } catch (const std::runtime_error& failure) { co_return failure.what(); }
  co_return "nothing";
}

/// An awaitable that resumes the coroutine on a new thread.
struct new_thread {
  std::vector<std::jthread>& threads;
  [[nodiscard]] bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> waiting) const {
    threads.emplace_back([waiting] { waiting.resume(); });
  }
  void await_resume() const noexcept {}
};

task<std::thread::id> moved_to(std::vector<std::jthread>& threads) {
  co_await new_thread(threads);
  co_return std::this_thread::get_id();
}

}  // namespace

TEST_CASE("a task gives its value to the one that awaits it", "[coro][task]") {
  CHECK(sync_wait(number(7)) == 7);
  CHECK(sync_wait(sum(3, 4)) == 7);
}

TEST_CASE("a task does not start before it is awaited", "[coro][task]") {
  bool ran = false;
  auto note = [](bool& flag) -> task<> {
    flag = true;
    co_return;
  };
  auto made = note(ran);
  CHECK_FALSE(ran);
  { auto dropped = note(ran); }
  CHECK_FALSE(ran);
  sync_wait(std::move(made));
  CHECK(ran);
}

TEST_CASE("an exception goes through the tasks to the one that waits", "[coro][task]") {
  CHECK_THROWS_WITH(sync_wait(broken("gone")), "gone");
  CHECK(sync_wait(told_what_broke()) == "a pipe that is longer than the small buffer");
}

TEST_CASE("a task can give a value that can only be moved", "[coro][task]") {
  auto boxed = [](int value) -> task<std::unique_ptr<int>> { co_return std::make_unique<int>(value); };
  CHECK(*sync_wait(boxed(5)) == 5);
}

TEST_CASE("a task may end on another thread than it began on", "[coro][task]") {
  std::vector<std::jthread> threads;
  CHECK(sync_wait(moved_to(threads)) != std::this_thread::get_id());
}

TEST_CASE("many awaits in a row and a deep chain of tasks are fine", "[coro][task]") {
  struct chain {
    static task<int> down(int depth) {
      if (depth == 0) { co_return 0; }
      const int below = co_await down(depth - 1);
      co_return below + 1;
    }
  };
  CHECK(sync_wait(chain::down(2'000)) == 2'000);
  auto in_a_row = [](int count) -> task<int> {
    int total = 0;
    for (int i = 0; i < count; ++i) { total += co_await number(1); }
    co_return total;
  };
  CHECK(sync_wait(in_a_row(1'000'000)) == 1'000'000);
}
