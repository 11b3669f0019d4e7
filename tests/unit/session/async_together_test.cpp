// SPDX-License-Identifier: Apache-2.0
//
// Tests of several asynchronous sessions in one event loop or one thread pool: independent sessions, and a chief and
// workers of one model.
#include "support/async_rig.hpp"
#include "support/catch.hpp"
#include "support/log_capture.hpp"
#include "support/shared_model.hpp"

#include <boost/asio/bind_executor.hpp>
#include <boost/asio/thread_pool.hpp>

#include <cstdint>
#include <deque>
#include <exception>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace sw = stepwell;
using namespace sw::test;

namespace {

using shared_session = sw::async_monitored_session<sw::model_session<shared_model>>;
const std::string master = "local:awaited";

asio::awaitable<std::int64_t> ten_steps(shared_session& session) {
  co_await session.async_start();
  std::int64_t last = 0;
  for (int i = 0; i < 10; ++i) {
    const auto step = co_await session.async_next();
    last = step->global_step;
  }
  co_await session.async_close();
  co_return last;
}

/// Runs the loop until `count` waits are pending on the clock.
void run_until_waiting(asio::io_context& loop, const sw::manual_clock& clock, std::size_t count) {
  loop.restart();
  while (clock.pending() < count) {
    loop.poll();
    std::this_thread::yield();
  }
}

}  // namespace

TEST_CASE("several sessions take turns in one event loop, and run side by side in one pool", "[session][async]") {
  const int threads = GENERATE(0, 2);
  asio::io_context loop;
  asio::thread_pool pool(2);
  std::deque<async_rig> rigs(6);
  std::deque<async_test_session> sessions;
  std::deque<ending_source> sources(6, ending_source{40});
  std::vector<std::future<std::vector<std::int64_t>>> all;
  for (std::size_t i = 0; i < rigs.size(); ++i) {
    rigs[i].model.before = failing_batches{{static_cast<std::int64_t>(i) + 3}};
    sessions.push_back(rigs[i].async(5));
    all.push_back(threads == 0 ? asio::co_spawn(loop, whole_life(sessions[i], sources[i]), asio::use_future)
                               : asio::co_spawn(pool, whole_life(sessions[i], sources[i]), asio::use_future));
  }
  loop.run();
  for (std::size_t i = 0; i < rigs.size(); ++i) {
    CHECK(all[i].get().back() == 40);
    CHECK(same(rigs[i].model, model_after(40)));
  }
}

TEST_CASE("D-3 any number of workers that wait for their chief keep neither the loop nor the chief from going on", "[session][async]") {
  log_capture log;
  constexpr int count = 20;  // more than the threads for offloaded calls
  asio::io_context loop;
  const auto clock = std::make_shared<sw::manual_clock>();  // stands still, so the test fails if a session polls
  shared_model model;
  std::deque<shared_session> workers;
  std::vector<std::future<std::int64_t>> all;
  for (int i = 0; i < count; ++i) {
    workers.emplace_back(options_on(clock), worker_of(model, master));
    all.push_back(asio::co_spawn(loop, ten_steps(workers.back()), asio::use_future));
  }
  run_until_waiting(loop, *clock, count);
  shared_session chief(options_on(clock), chief_of(model, master));
  all.push_back(asio::co_spawn(loop, ten_steps(chief), asio::use_future));
  loop.restart(), loop.run();
  for (auto& one : all) { CHECK(one.get() > 0); }
  CHECK(model.count == 10 * (count + 1));
  CHECK_FALSE(model.was_disturbed);
}

TEST_CASE("a worker that waits for its chief can be cancelled, started again, or destroyed", "[session][async][cancel]") {
  const auto kind = GENERATE(asio::cancellation_type::terminal, asio::cancellation_type::partial, asio::cancellation_type::total);
  log_capture log;
  asio::io_context loop;
  const auto clock = std::make_shared<sw::manual_clock>();
  shared_model model;
  asio::cancellation_signal cancel;
  std::exception_ptr failure;
  shared_session worker(options_on(clock), worker_of(model, master));
  const auto on_loop = [&](auto callback) { return asio::bind_executor(loop.get_executor(), std::move(callback)); };
  worker.async_start(asio::bind_cancellation_slot(cancel.slot(), on_loop([&](const std::exception_ptr& how) { failure = how; })));
  run_until_waiting(loop, *clock, 1);
  cancel.emit(kind);
  loop.run();
  CHECK(was_aborted(failure));
  CHECK_FALSE(worker.is_started());
  CHECK_FALSE(worker.should_stop());
  {
    shared_session another(options_on(clock), worker_of(model, master));
    another.async_start(on_loop([](const std::exception_ptr& how) { CHECK(was_aborted(how)); }));
    run_until_waiting(loop, *clock, 1);
  }  // the destructor does not wait for the chief
  shared_session chief(options_on(clock), chief_of(model, master));
  auto second = asio::co_spawn(loop, ten_steps(worker), asio::use_future);
  chief.async_start(
      on_loop([](const std::exception_ptr& how) { CHECK_FALSE(how); }));  // stays open: a master exists while a session is connected
  loop.restart(), loop.run();
  second.get();
  CHECK(model.count == 10);
}

TEST_CASE("at a master, a step that waits for its turn does not hold up the event loop", "[session][async][master]") {
  log_capture log;
  asio::io_context loop;
  const auto clock = std::make_shared<sw::manual_clock>();
  shared_model model;
  shared_session chief(options_on(clock), chief_of(model, master));
  const auto on_loop = [&](auto callback) { return asio::bind_executor(loop.get_executor(), std::move(callback)); };
  shared_session worker(options_on(clock), worker_of(model, master));
  chief.async_start(on_loop([](const std::exception_ptr& how) { CHECK_FALSE(how); }));
  worker.async_start(on_loop([](const std::exception_ptr& how) { CHECK_FALSE(how); }));
  loop.run();
  bool is_stepped = false;
  bool had_its_turn = false;
  {
    const auto alone = worker.raw_session().exclusive();  // the worker has exclusive access
    chief.async_next(on_loop([&](const std::exception_ptr&, auto) { is_stepped = true; }));
    asio::post(loop, [&] { had_its_turn = true; });
    loop.restart();
    for (int i = 0; i < 10; ++i) { loop.poll_one(); }
    CHECK(had_its_turn);
    CHECK_FALSE(is_stepped);
  }
  loop.run();
  CHECK(is_stepped);
}
