// SPDX-License-Identifier: Apache-2.0
//
// Tests of asynchronous evaluations of snapshots: during a training, with their output, and with cancellation and
// interruption.
#include "support/async_rig.hpp"
#include "support/catch.hpp"
#include "support/gate.hpp"
#include "support/log_capture.hpp"
#include "unit/hooks/event_reading.hpp"

#include <stepwell/training/async_evaluate.hpp>

#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/thread_pool.hpp>

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#pragma GCC diagnostic ignored "-Wmismatched-new-delete"  // false warning of g++ 12 about the frames of Asio

namespace sw = stepwell;
using namespace sw::test;
using shared_snapshot = std::shared_ptr<const sw::snapshot>;
using measure_type = std::function<float(const sw::snapshot&, std::stop_token)>;

namespace {

shared_snapshot snapshot_at(std::int64_t step) {
  auto model = model_after(step);
  return std::make_shared<const sw::snapshot>(sw::snapshot::capture(sw::snapshot_pool(256, 1).acquire(), model.variables(), step));
}
float sum_of(const sw::snapshot& taken) {
  adding_model seen;
  sw::restore(seen, taken);
  return seen.sum;
}

/// A measurement with named metrics.
struct quality {
  double sum = 0;
  [[nodiscard]] sw::summary::metric_list metrics() const { return {{"eval/sum", sum}, {"eval/half", sum / 2}}; }
};

/// Blocks until a stop is requested.
float until_stopped(const std::stop_token& stop) {
  gate asked;
  asked.close();
  const std::stop_callback opens(stop, [&] { asked.open(); });
  asked.pass();
  return 1;
}

/// Evaluates `taken` with `fn` in `loop` and returns the result.
template<class Fn>
auto evaluated(asio::io_context& loop, shared_snapshot taken, Fn fn, sw::async_evaluate_options how = {}) {
  auto done = asio::co_spawn(loop, sw::async_evaluate(std::move(taken), std::move(fn), std::move(how)), asio::use_future);
  loop.restart(), loop.run();
  return done.get();
}

/// Trains and evaluates the state after every step. The evaluated model is local to the coroutine frame.
asio::awaitable<void> trained_and_evaluated(async_test_session& session, ending_source& source, const measure_type& measure,
                                            std::atomic<int>& running) {
  co_await asio::this_coro::reset_cancellation_state(asio::enable_total_cancellation());
  adding_model seen;  // destroyed with the frame; no evaluation may use it then
  const auto measure_model = [&](adding_model& model) {
    ++running;
    model.weights.push_back(model.sum);
    model.weights.pop_back();
    --running;
  };
  if (!session.is_started()) { co_await session.async_start(); }
  for (;;) {
    const auto step = co_await session.async_next(source);
    if (!step) { break; }
    const auto taken = std::make_shared<const sw::snapshot>(co_await session.async_snapshot());
    const auto found = co_await sw::async_evaluate(taken, measure);
    CHECK(found == model_after(step->global_step).sum);
    co_await sw::async_evaluate(taken, seen, measure_model);
    CHECK(same(seen, model_after(step->global_step)));
  }
  co_await session.async_close();
}
asio::awaitable<void> all_within(async_rig& rig, std::int64_t steps, const measure_type& measure, std::atomic<int>& running) {
  auto session = rig.async(2);
  ending_source source{steps};
  co_await trained_and_evaluated(session, source, measure, running);
}

/// Returns a measure that counts its running calls.
measure_type measure_counted_in(std::atomic<int>& running) {
  return [&running](const sw::snapshot& taken, const std::stop_token&) {
    ++running;
    const auto sum = sum_of(taken);
    --running;
    return sum;
  };
}

}  // namespace

TEST_CASE("training continues while a snapshot is evaluated, and does not change the evaluated values", "[training][async][evaluate]") {
  async_rig rig;
  auto session = rig.async(0);
  ending_source source{5};
  gate in_evaluation;
  float found = 0;
  in_evaluation.close();
  rig.await(session.async_start());
  rig.await(session.async_next(source));
  auto taken = rig.await(session.async_snapshot());
  const auto measure = [&](const sw::snapshot& at) {
    in_evaluation.pass();
    return sum_of(at);
  };
  sw::async_evaluate(std::move(taken), measure, {},
                     asio::bind_executor(rig.io.get_executor(), [&](const std::exception_ptr& failure, float value) {
                       CHECK_FALSE(failure);
                       found = value;
                     }));
  asio::co_spawn(rig.io, all_steps(session, source), [&](const std::exception_ptr&, const std::vector<std::int64_t>& steps) {
    CHECK(steps == std::vector<std::int64_t>{2, 3, 4, 5});
    in_evaluation.open();
  });
  rig.io.restart(), rig.io.run();
  CHECK(found == 1);
  CHECK(rig.model.sum == 15);
}

TEST_CASE("the result of an evaluation is written with the step of its snapshot", "[training][async][evaluate]") {
  const temporary_directory directory;
  asio::io_context loop;
  const auto events = std::make_shared<sw::summary::writer>(directory.path());
  const auto how = sw::async_evaluate_options().writes_to(events);
  const auto found = evaluated(loop, snapshot_at(4), [](const sw::snapshot& at) { return quality{sum_of(at)}; }, how);
  CHECK(found.sum == 10);
  evaluated(loop, snapshot_at(3), [](const sw::snapshot& at) { return sw::summary::metric_list{{"eval/listed", sum_of(at)}}; }, how);
  evaluated(loop, snapshot_at(2), [](const sw::snapshot& at) { return std::map<std::string, float>{{"eval/mapped", sum_of(at)}}; }, how);
  events->close();
  using scalars = std::map<std::int64_t, float>;
  CHECK(scalars_in(directory.path(), "eval/sum") == scalars{{4, 10}});
  CHECK(scalars_in(directory.path(), "eval/half") == scalars{{4, 5}});
  CHECK(scalars_in(directory.path(), "eval/listed") == scalars{{3, 6}});
  CHECK(scalars_in(directory.path(), "eval/mapped") == scalars{{2, 3}});
  CHECK_THROWS_WITH(evaluated(loop, snapshot_at(1), sum_of, how), ContainsSubstring("does not return metrics"));
}

TEST_CASE("an evaluation runs on a thread of its own, or where one says, and its failure is thrown where it is awaited",
          "[training][async][evaluate]") {
  asio::io_context loop;
  asio::thread_pool pool(1);
  const auto where = [](const sw::snapshot&) { return std::this_thread::get_id(); };
  CHECK(evaluated(loop, snapshot_at(1), where) != std::this_thread::get_id());
  CHECK(evaluated(loop, snapshot_at(1), where, sw::async_evaluate_options().evaluates_on(loop.get_executor())) ==
        std::this_thread::get_id());
  std::thread::id of_pool;
  asio::post(pool, [&] { of_pool = std::this_thread::get_id(); });
  CHECK(evaluated(loop, snapshot_at(1), where, sw::async_evaluate_options().evaluates_on(pool.get_executor())) == of_pool);
  CHECK_THROWS_AS(evaluated(loop, snapshot_at(1), [](const sw::snapshot&) { throw std::logic_error("no such test set"); }),
                  std::logic_error);
  CHECK_THROWS_AS(evaluated(loop, nullptr, sum_of), sw::invalid_argument_error);
  pool.stop(), pool.join();
}

TEST_CASE("an executor that ends before it has called the evaluation fails it", "[training][async][evaluate]") {
  asio::io_context loop;
  auto other = std::make_unique<asio::io_context>();
  std::exception_ptr failure;
  sw::async_evaluate(snapshot_at(1), sum_of, sw::async_evaluate_options().evaluates_on(other->get_executor()),
                     asio::bind_executor(loop.get_executor(), [&](std::exception_ptr how, float) { failure = how; }));
  loop.poll();
  other.reset();
  loop.restart(), loop.run();
  CHECK_THROWS_AS(std::rethrow_exception(failure), sw::unavailable_error);
}

TEST_CASE("an evaluation may have a model, into which the snapshot is restored first", "[training][async][evaluate]") {
  asio::io_context loop;
  const auto on_model = [&](auto& model, auto fn, sw::async_evaluate_options how = {}) {
    auto done = asio::co_spawn(loop, sw::async_evaluate(snapshot_at(3), model, fn, std::move(how)), asio::use_future);
    loop.restart(), loop.run();
    return done.get();
  };
  adding_model own;
  CHECK(on_model(own, [](adding_model& model) { return model.sum; }) == 6);
  CHECK(on_model(own, [](const adding_model& model, std::stop_token) { return model.weights; }) == own.weights);
  CHECK(same(own, model_after(3)));
  counting_model other;
  const auto count = [](counting_model& model) { return model.count; };
  CHECK_THROWS_AS(on_model(other, count), sw::not_found_error);
  sw::restore_options names{.names = {{"count", "sum"}}};
  CHECK_THROWS_AS(on_model(other, count, sw::async_evaluate_options().restores(names)), sw::invalid_argument_error);
  CHECK(other.count == 0);
}

TEST_CASE("several evaluations share one snapshot, with any completion token", "[training][async][evaluate]") {
  const auto taken = snapshot_at(3);
  auto first = sw::async_evaluate(taken, sum_of, {}, asio::use_future);
  auto second = sw::async_evaluate(taken, sum_of, {}, asio::use_future);
  auto nothing = sw::async_evaluate(taken, [](const sw::snapshot&) {}, {}, asio::use_future);
  CHECK(first.get() + second.get() == 12);
  nothing.get();
}

TEST_CASE("an evaluation that is cancelled before it begins is not made", "[training][async][evaluate][cancel]") {
  const auto kind = GENERATE(asio::cancellation_type::terminal, asio::cancellation_type::partial, asio::cancellation_type::total);
  asio::io_context loop, idle;
  asio::cancellation_signal cancel;
  std::exception_ptr failure;
  bool is_made = false;
  sw::async_evaluate(
      snapshot_at(1), [&](const sw::snapshot&) { is_made = true; }, sw::async_evaluate_options().evaluates_on(idle.get_executor()),
      asio::bind_cancellation_slot(cancel.slot(),
                                   asio::bind_executor(loop.get_executor(), [&](std::exception_ptr how) { failure = how; })));
  loop.poll();
  CHECK_FALSE(failure);
  cancel.emit(kind);
  loop.run();
  CHECK(was_aborted(failure));
  idle.run();
  CHECK_FALSE(is_made);
}

TEST_CASE("an evaluation that is cancelled while it runs is asked to stop, and what it gives then is delivered",
          "[training][async][evaluate][cancel]") {
  const bool throws = GENERATE(false, true);
  asio::io_context loop;
  asio::cancellation_signal cancel;
  std::exception_ptr failure;
  std::optional<float> found;
  gate began;
  began.close();
  const auto measure = [&](const sw::snapshot&, const std::stop_token& stop) {
    began.pass();
    const auto value = until_stopped(stop);
    if (throws) { throw sw::cancelled_error("asked to stop"); }
    return value;
  };
  sw::async_evaluate(
      snapshot_at(1), measure, {},
      asio::bind_cancellation_slot(cancel.slot(), asio::bind_executor(loop.get_executor(), [&](std::exception_ptr how, float value) {
                                     failure = how;
                                     if (!how) { found = value; }
                                   })));
  loop.poll();
  began.wait_for_somebody();
  began.open();
  cancel.emit(asio::cancellation_type::total);
  loop.run();
  CHECK(was_aborted(failure) == throws);
  CHECK(found.has_value() == !throws);
}

TEST_CASE("an event loop that ends asks evaluations to stop, and waits for them", "[training][async][evaluate][abandon]") {
  gate began;
  std::atomic<bool> has_ended = false;
  began.close();
  {
    asio::io_context loop;
    const auto measure = [&](const sw::snapshot&, const std::stop_token& stop) {
      began.pass();
      const auto value = until_stopped(stop);
      has_ended = true;
      return value;
    };
    asio::co_spawn(loop, sw::async_evaluate(snapshot_at(1), measure),
                   [](const std::exception_ptr&, float) { FAIL("nobody waits any more"); });
    loop.poll();
    began.wait_for_somebody();
    began.open();
  }
  CHECK(has_ended);
}

TEST_CASE("evaluations may be abandoned with their event loop after any number of handlers", "[training][async][evaluate][abandon]") {
  log_capture log;
  int handlers = 0;
  for (bool has_ended = false; !has_ended; ++handlers) {
    async_rig rig;
    std::atomic<int> running = 0;
    const auto measure = measure_counted_in(running);
    {
      asio::io_context loop;
      asio::co_spawn(loop, all_within(rig, 2, measure, running), [&](const std::exception_ptr& failure) {
        CHECK_FALSE(failure);
        has_ended = true;
      });
      run_handlers(loop, handlers, has_ended);
    }
    CHECK(running == 0);
    rig.settle();
  }
  CHECK(handlers > 10);
}

TEST_CASE("evaluations may be cancelled after any number of handlers", "[training][async][evaluate][cancel]") {
  log_capture log;
  int handlers = 0;
  int aborted = 0;
  for (bool has_ended = false; !has_ended; ++handlers) {
    async_rig rig;
    std::atomic<int> running = 0;
    const auto measure = measure_counted_in(running);
    auto session = rig.async(2);
    ending_source source{2};
    const auto end = cancel_after(rig.io, handlers, trained_and_evaluated(session, source, measure, running));
    has_ended = end.had_ended;
    REQUIRE(end.is_done);
    CHECK(running == 0);
    if (end.failure) {
      CHECK(was_aborted(end.failure));
      ++aborted;
      if (!session.is_closed()) { rig.await(trained_and_evaluated(session, source, measure, running)); }
    }
    CHECK(session.is_closed());
    CHECK(same(rig.model, model_after(2)));
  }
  CHECK(aborted > 5);
}
