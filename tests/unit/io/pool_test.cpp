// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"
#include "support/log_capture.hpp"

#include <stepwell/base/detail/thread.hpp>
#include <stepwell/io/pool.hpp>

#include <array>
#include <atomic>
#include <future>
#include <latch>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>

namespace io = stepwell::io;
using stepwell::log_level;
using stepwell::test::log_capture;

TEST_CASE("posted jobs run on the threads of the pool, and join waits for them", "[io][pool]") {
  std::atomic<int> runs = 0;
  std::atomic<bool> was_inside = true;
  io::pool pool(2);
  for (int i = 0; i < 100; ++i) {
    pool.post([&] {
      ++runs;
      if (!pool.running_in_this_thread()) { was_inside = false; }
    });
  }
  pool.join();
  CHECK(runs == 100);
  CHECK(was_inside);
  CHECK_FALSE(pool.running_in_this_thread());
}

TEST_CASE("a joined pool runs its jobs on the thread that posts them", "[io][pool]") {
  io::pool pool(1);
  pool.join();
  pool.join();
  std::thread::id ran;
  pool.post([&] { ran = std::this_thread::get_id(); });
  CHECK(ran == std::this_thread::get_id());
}

TEST_CASE("a job that throws is logged, and the pool continues", "[io][pool]") {
  const log_capture log;
  std::atomic<bool> ran = false;
  {
    io::pool pool(1);
    pool.post([] { throw std::runtime_error("broken job"); });
    pool.post([&] { ran = true; });
  }
  CHECK(ran);
  CHECK(log.contains(log_level::error, "broken job"));
}

TEST_CASE("a pool may be let go by the last of its own jobs", "[io][pool]") {
  auto pool = std::make_shared<io::pool>(1);
  std::promise<void> done;
  std::promise<void> go;
  pool->post([&, held = pool]() mutable {
    go.get_future().wait();
    held.reset();
    done.set_value();
  });
  pool.reset();
  go.set_value();
  done.get_future().wait();
}

TEST_CASE("the shared pool is one and the same", "[io][pool]") {
  CHECK(io::pool::shared() == io::pool::shared());
  std::promise<std::thread::id> ran;
  io::pool::shared()->post([&] { ran.set_value(std::this_thread::get_id()); });
  CHECK(ran.get_future().get() != std::this_thread::get_id());
}

TEST_CASE("the threads of a pool have names, and give none to a thread that runs a job for a joined one", "[io][pool]") {
  std::array<std::string, 2> names;
  std::latch both(2);
  io::pool pool(2);
  for (auto& name : names) {
    pool.post([&] {
      both.arrive_and_wait();  // makes each job use its own thread
      name = stepwell::current_thread_name();
    });
  }
  pool.join();
  CHECK(std::set<std::string>(names.begin(), names.end()) == std::set<std::string>{"stepwell io 0", "stepwell io 1"});
  const auto mine = stepwell::current_thread_name();
  pool.post([&] { names[0] = stepwell::current_thread_name(); });
  CHECK(names[0] == mine);
  CHECK(stepwell::current_thread_name() == mine);
}

TEST_CASE("shared work runs on the calling thread and on idle threads at the same time", "[io][pool]") {
  io::pool pool(2);
  std::latch all(3);
  std::mutex mutex;
  std::set<std::thread::id> ran;
  pool.share([&] {
    all.arrive_and_wait();  // returns only if three threads are here
    const std::lock_guard lock(mutex);
    ran.insert(std::this_thread::get_id());
  });
  CHECK(ran.size() == 3);
  CHECK(ran.contains(std::this_thread::get_id()));
}

TEST_CASE("shared work does not wait for threads that are busy, and runs alone after join", "[io][pool]") {
  io::pool pool(1);
  std::promise<void> go;
  std::promise<void> begun;
  pool.post([&] {
    begun.set_value();
    go.get_future().wait();
  });
  begun.get_future().wait();
  int runs = 0;
  pool.share([&] { ++runs; });  // would deadlock if it waited
  CHECK(runs == 1);
  go.set_value();
  pool.join();
  pool.share([&] { ++runs; });
  CHECK(runs == 2);
}

TEST_CASE("several threads may share work at once, also threads of the pool", "[io][pool]") {
  io::pool pool(2);
  constexpr int parts = 1000;
  const auto count_all = [&] {
    std::atomic<int> next = 0;
    std::atomic<int> done = 0;
    pool.share([&] {
      while (next++ < parts) { ++done; }
    });
    return done == parts;
  };
  std::atomic<int> good = 0;
  std::latch finished(4);
  for (int i = 0; i < 4; ++i) {
    pool.post([&] {
      good += count_all();
      finished.count_down();
    });
  }
  for (int i = 0; i < 50; ++i) { good += count_all(); }
  finished.wait();
  CHECK(good == 54);
}
