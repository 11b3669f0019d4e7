// SPDX-License-Identifier: Apache-2.0
//
// Tests of the asynchronous event (`async_event`), of asynchronous sleep on a manual clock, and of offloading work to threads.
#include "support/catch.hpp"

#include <stepwell/coro/detail/async_event.hpp>
#include <stepwell/coro/detail/async_sleep.hpp>
#include <stepwell/coro/detail/helper_threads.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

namespace sw = stepwell;
namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace {

asio::awaitable<void> wait_for(sw::coro::async_event async_event, std::shared_ptr<int> count) {
  co_await async_event.async_wait(asio::use_awaitable);
  ++*count;
}

}  // namespace

TEST_CASE("a bell wakes the waiting thread, and a ring before the wait is kept", "[coro][bell]") {
  asio::io_context loop;
  sw::coro::async_event async_event;
  const auto count = std::make_shared<int>(0);
  async_event.set();
  async_event.set();  // has no additional effect
  asio::co_spawn(loop, wait_for(async_event, count), [](const std::exception_ptr&) {});
  loop.run();
  CHECK(*count == 1);
  asio::co_spawn(loop, wait_for(async_event, count), [](const std::exception_ptr&) {});
  loop.restart(), loop.poll();
  CHECK(*count == 1);
  std::jthread([async_event] { async_event.set(); });
  loop.run();
  CHECK(*count == 2);
}

TEST_CASE("a bell can be rung during and after the destruction of the loop that waits for it", "[coro][bell]") {
  for (int round = 0; round < 300; ++round) {
    const auto count = std::make_shared<int>(0);
    sw::coro::async_event async_event;
    std::atomic<bool> is_begun = false;
    std::jthread ringer;
    {
      asio::io_context loop;
      asio::co_spawn(loop, wait_for(async_event, count), [](const std::exception_ptr&) {});
      loop.poll();
      ringer = std::jthread([async_event, &is_begun] {
        is_begun = true;
        is_begun.notify_all();
        async_event.set();
      });
      is_begun.wait(false);
    }
    ringer.join();
    CHECK(count.use_count() == 1);  // the coroutine frame is destroyed
    async_event.set();
  }
}

TEST_CASE("a cancelled wait for a bell ends, and a later ring is for the next", "[coro][bell]") {
  asio::io_context loop;
  sw::coro::async_event async_event;
  asio::cancellation_signal cancel;
  std::optional<boost::system::error_code> how;
  async_event.async_wait(asio::bind_cancellation_slot(
      cancel.slot(), asio::bind_executor(loop.get_executor(), [&](boost::system::error_code ended) { how = ended; })));
  loop.poll();
  CHECK_FALSE(how);
  cancel.emit(asio::cancellation_type::partial);
  loop.run();
  CHECK(how == asio::error::operation_aborted);
  async_event.set();
  async_event.async_wait(asio::bind_executor(loop.get_executor(), [&](boost::system::error_code ended) { how = ended; }));
  loop.restart(), loop.run();
  CHECK_FALSE(*how);
}

TEST_CASE("an awaited sleep ends when its clock says so", "[coro][clock]") {
  asio::io_context loop;
  const auto clock = std::make_shared<sw::manual_clock>();
  bool is_awake = false;
  asio::co_spawn(loop, sw::coro::async_sleep_until(clock, clock->now() + 5s), [&](const std::exception_ptr&) { is_awake = true; });
  loop.poll();
  clock->advance(4s);
  loop.poll();
  CHECK_FALSE(is_awake);
  clock->advance(1s);
  loop.run();
  CHECK(is_awake);
  CHECK(clock->pending() == 0);
}

TEST_CASE("while jobs of helpers wait, other jobs run in their place; afterwards the limit holds again", "[coro][threads]") {
  sw::coro::helper_threads helpers(2);
  std::mutex mutex;
  std::condition_variable changed;
  bool is_open = false;
  std::atomic<int> waited = 0;
  const auto wait_here = [&] {
    std::unique_lock lock(mutex);
    sw::system_clock()->wait_until(lock, changed, sw::clock::time_point::max(), [&] { return is_open; });
    ++waited;
    waited.notify_all();
  };
  for (int i = 0; i < 5; ++i) { helpers.post(wait_here); }
  std::promise<void> other;
  helpers.post([&] { other.set_value(); });
  CHECK(other.get_future().wait_for(10s) == std::future_status::ready);
  {
    const std::lock_guard lock(mutex);
    is_open = true;
  }
  changed.notify_all();
  for (int seen = waited; seen < 5; seen = waited) { waited.wait(seen); }
  std::promise<void> go;
  const auto gone = go.get_future().share();
  std::atomic<int> begun = 0;
  std::atomic<int> ended = 0;
  for (int i = 0; i < 7; ++i) {
    helpers.post([&, gone] {
      ++begun;
      begun.notify_all();
      gone.wait();
      ++ended;
      ended.notify_all();
    });
  }
  for (int seen = begun; seen < 2; seen = begun) { begun.wait(seen); }
  std::promise<void> apart;
  helpers.post_apart([&] { apart.set_value(); });
  apart.get_future().wait();
  CHECK(begun == 2);
  go.set_value();
  for (int seen = ended; seen < 7; seen = ended) { ended.wait(seen); }
}

TEST_CASE("helpers run so many jobs at a time, and those apart besides", "[coro][threads]") {
  sw::coro::helper_threads helpers(2);
  std::promise<void> go;
  const auto gone = go.get_future().share();
  std::atomic<int> ran = 0;
  for (int i = 0; i < 5; ++i) {
    helpers.post([&ran, gone] {
      gone.wait();
      ++ran;
      ran.notify_all();
    });
  }
  std::promise<void> apart;
  helpers.post_apart([&] { apart.set_value(); });
  apart.get_future().wait();
  CHECK(ran == 0);
  go.set_value();
  for (int seen = ran; seen < 5; seen = ran) { ran.wait(seen); }
  CHECK(ran == 5);
}
