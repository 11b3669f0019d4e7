// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"
#include "support/log_capture.hpp"
#include "support/toy_model.hpp"

#include <stepwell/base/error.hpp>
#include <stepwell/data/queue.hpp>
#include <stepwell/data/source.hpp>
#include <stepwell/model/model_session.hpp>
#include <stepwell/threads/queue_runner.hpp>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <ranges>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace sw = stepwell;
namespace data = stepwell::data;
using sw::test::adding_model;
using sw::test::log_capture;

namespace {

/// A queue with only the required members.
struct bare_queue {
  std::string name() const { return "bare"; }
  void close(bool) {}
};
struct nameless_queue {
  void close(bool);
};
struct endless_queue {
  std::string name() const;
};
static_assert(sw::closable_queue<bare_queue> && sw::closable_queue<data::fifo_queue<int>>);
static_assert(!sw::closable_queue<nameless_queue> && !sw::closable_queue<endless_queue>);

const std::vector<std::int64_t> one_to_five = {1, 2, 3, 4, 5};

struct rig {
  std::shared_ptr<sw::manual_clock> time = std::make_shared<sw::manual_clock>();
  data::fifo_queue<std::int64_t> queue{{.capacity = 3, .name = "numbers", .clock = time}};
  std::atomic<std::int64_t> next = 0;
  sw::coordinator threads{time, {}};
  int session = 0;  // its address identifies the session

  /// Returns an operation that enqueues increasing numbers without end. It blocks while the queue is full.
  [[nodiscard]] sw::enqueue_op endless(std::string name = "endless") {
    return {std::move(name), [this](const std::stop_token&) { queue.enqueue(next++); }};
  }
  std::vector<std::int64_t> take_all() {
    std::vector<std::int64_t> all;
    for (; queue.peek() != nullptr; queue.advance()) { all.push_back(*queue.peek()); }
    return all;
  }
};

std::vector<std::string> names_of(const std::vector<sw::coordinated_thread>& threads) {
  std::vector<std::string> names;
  for (const auto& thread : threads) { names.push_back(thread.name()); }
  return names;
}

void join_all(const std::vector<sw::coordinated_thread>& threads) {
  for (const auto& thread : threads) { thread.join(); }
}

[[noreturn]] void fail(const std::stop_token&) { throw std::runtime_error("the disk is gone"); }
[[noreturn]] void end(const std::stop_token&) { throw sw::out_of_range_error("no more files"); }

}  // namespace

TEST_CASE("QR-1 a runner without operations, functions or closing exceptions is refused", "[session][queue_runner]") {
  bare_queue queue;
  CHECK_THROWS_AS(sw::queue_runner(queue, {}), sw::invalid_argument_error);
  CHECK_THROWS_AS(sw::queue_runner(queue, {{"nothing", nullptr}}), sw::invalid_argument_error);
  CHECK_THROWS_AS(sw::queue_runner(queue, {{"ends", end}}, {.queue_closed = {}}), sw::invalid_argument_error);
  CHECK(sw::queue_runner(queue, {{"ends", end}}).name() == "bare");
}

TEST_CASE("QR-1 QR-5 the end of the input closes the queue, and is not reported to the coordinator", "[session][queue_runner]") {
  rig on;
  sw::queue_runner runner(on.queue, {sw::enqueue_from(on.queue, one_to_five)});
  const auto made = runner.create_threads(&on.session, &on.threads, true);
  CHECK(on.take_all() == one_to_five);
  CHECK_FALSE(on.threads.should_stop());
  CHECK(on.queue.is_closed());
  on.threads.request_stop();
  CHECK_NOTHROW(on.threads.join());
}

TEST_CASE("QR-1 operations to close and to cancel may be given, and what they throw is ignored", "[session][queue_runner]") {
  rig on;
  std::atomic<int> closed = 0;
  std::atomic<int> cancelled = 0;
  sw::queue_runner runner(on.queue, {{"ends", end}},
                          {.close_op =
                               [&] {
                                 ++closed;
                                 throw std::runtime_error("close");
                               },
                           .cancel_op =
                               [&] {
                                 ++cancelled;
                                 throw std::runtime_error("cancel");
                               }});
  join_all(runner.create_threads(&on.session, nullptr, true));
  CHECK(closed == 1);
  CHECK(cancelled == 0);
  runner.create_threads(&on.session, &on.threads, true);
  on.threads.request_stop();
  CHECK_NOTHROW(on.threads.join());
  CHECK(cancelled == 1);
  CHECK_FALSE(on.queue.is_closed());
}

TEST_CASE("QR-1 the exceptions that mean the end of the input can be chosen", "[session][queue_runner]") {
  rig on;
  sw::queue_runner runner(on.queue, {{"ends", [](std::stop_token) { throw sw::aborted_error("that was all"); }}},
                          {.queue_closed = {sw::errc::aborted}});
  runner.create_threads(&on.session, &on.threads, true);
  CHECK(on.queue.peek() == nullptr);
  CHECK_FALSE(on.threads.should_stop());
}

TEST_CASE("QR-2 there is one thread for each operation, and one that closes the queue after a stop", "[session][queue_runner]") {
  rig on;
  sw::queue_runner runner(on.queue, {on.endless("read"), on.endless("make")});
  auto made = runner.create_threads(&on.session, &on.threads);
  CHECK(names_of(made) == std::vector<std::string>{"QueueRunnerThread-numbers-read", "QueueRunnerThread-numbers-make",
                                                   "QueueRunnerThread-numbers-close_on_stop"});
  CHECK(std::ranges::none_of(made, &sw::coordinated_thread::is_alive));
  CHECK(runner.running(&on.session) == 2);
  CHECK(runner.create_threads(&on.session, &on.threads, true).empty());
  for (auto& thread : made) { thread.start(); }
  on.threads.request_stop();
  CHECK_NOTHROW(on.threads.join());
  CHECK(std::ranges::none_of(made, &sw::coordinated_thread::is_alive));
  CHECK(runner.running(&on.session) == 0);
}

TEST_CASE("QR-2 without a coordinator nothing closes on a stop", "[session][queue_runner]") {
  rig on;
  sw::queue_runner runner(on.queue, {{"ends", end}});
  const auto made = runner.create_threads(&on.session, nullptr, true);
  CHECK(names_of(made) == std::vector<std::string>{"QueueRunnerThread-numbers-ends"});
  join_all(made);
}

TEST_CASE("QR-2 two sessions have threads of their own", "[session][queue_runner]") {
  rig on;
  int other = 0;
  sw::queue_runner runner(on.queue, {on.endless()});
  CHECK(runner.create_threads(&on.session, &on.threads, true).size() == 2);
  CHECK(runner.create_threads(&other, &on.threads, true).size() == 2);
  CHECK(runner.running(&on.session) == 1);
  CHECK(runner.running(&other) == 1);
  on.threads.request_stop();
  CHECK_NOTHROW(on.threads.join());
}

TEST_CASE("QR-2 threads that were never started give their place back", "[session][queue_runner]") {
  rig on;
  sw::queue_runner runner(on.queue, {{"ends", end}});
  static_cast<void>(runner.create_threads(&on.session));
  CHECK(runner.running(&on.session) == 0);
  CHECK(runner.create_threads(&on.session).size() == 1);
}

TEST_CASE("QR-3 the last thread at the end of its input closes the queue", "[session][queue_runner]") {
  rig on;
  sw::queue_runner runner(on.queue, {{"ends", end}, sw::enqueue_from(on.queue, one_to_five)});
  const auto made = runner.create_threads(&on.session, &on.threads, true);
  made[0].join();
  CHECK_FALSE(on.queue.is_closed());  // the other thread still blocks: its five elements do not fit
  CHECK(on.take_all() == one_to_five);
  made[1].join();
  CHECK(on.queue.is_closed());
}

TEST_CASE("QR-3 a failure requests a stop of the coordinator, which ends the others and the consumer", "[session][queue_runner]") {
  rig on;
  sw::queue_runner runner(on.queue, {on.endless(), {"fails", fail}});
  runner.create_threads(&on.session, &on.threads, true);
  on.take_all();  // returns, because the failure closes the queue
  CHECK(on.threads.should_stop());
  CHECK_THROWS_WITH(on.threads.join(), "the disk is gone");
  CHECK(on.threads.suppressed().empty());  // a cancelled enqueue is not reported
  CHECK(runner.exceptions_raised().empty());
}

TEST_CASE("QR-3 a failure without a coordinator is logged and kept", "[session][queue_runner]") {
  const log_capture log;
  rig on;
  bool fails = true;
  sw::queue_runner runner(on.queue, {{"fails", [&](std::stop_token stop) { fails ? fail(stop) : end(stop); }}});
  join_all(runner.create_threads(&on.session, nullptr, true));
  REQUIRE(runner.exceptions_raised().size() == 1);
  CHECK_THROWS_WITH(std::rethrow_exception(runner.exceptions_raised()[0]), "the disk is gone");
  CHECK(log.contains(sw::log_level::error, "Exception in QueueRunner: the disk is gone"));
  CHECK_FALSE(on.queue.is_closed());
  CHECK(runner.running(&on.session) == 0);
  fails = false;
  join_all(runner.create_threads(&on.session, nullptr, true));
  CHECK(runner.exceptions_raised().empty());
}

TEST_CASE("QR-4 a stop ends blocked producers, which is no failure", "[session][queue_runner]") {
  rig on;
  sw::queue_runner runner(on.queue, {on.endless("one"), on.endless("two")});
  const auto made = runner.create_threads(&on.session, &on.threads, true);
  REQUIRE(on.time->wait_for_pending(3));  // two wait for space, one for a stop
  on.threads.request_stop();
  CHECK_NOTHROW(on.threads.join());
  CHECK(std::ranges::none_of(made, &sw::coordinated_thread::is_alive));
  CHECK(on.queue.is_closed());
  CHECK(on.take_all().size() == 3);
}

TEST_CASE("QR-4 a stop wakes a consumer that waits for a batch", "[session][queue_runner]") {
  rig on;
  sw::queue_runner runner(on.queue, {{"slow", [&](std::stop_token) { on.threads.wait_for_stop(); }}});
  runner.create_threads(&on.session, &on.threads, true);
  on.threads.start_thread("stops", [&](std::stop_token) {
    static_cast<void>(on.time->wait_for_pending(3));  // until all of them wait
    on.threads.request_stop();
  });
  CHECK(on.queue.peek() == nullptr);
  CHECK_NOTHROW(on.threads.join());
}

TEST_CASE("QR-5 a session steps over a queue until its producers are at their end", "[session][queue_runner]") {
  rig on;
  adding_model model;
  auto session = sw::monitored_session(sw::training_options{.clock = on.time}, model);
  sw::queue_runner runner(on.queue, {sw::enqueue_from(on.queue, one_to_five)});
  runner.create_threads(&session, &on.threads, true);
  std::vector<std::int64_t> batches;
  for (const auto& step : session.steps(on.queue)) { batches.push_back(step.value.batch); }
  CHECK(batches == one_to_five);
  CHECK(session.stop_reason().cause == sw::stop_cause::end_of_data);
  session.close();
  CHECK(model.sum == 15);
}

TEST_CASE("QR-6 start_queue_runners starts the threads of all runners", "[session][queue_runner]") {
  rig on;
  const auto one = std::make_shared<sw::queue_runner>(on.queue, std::vector{on.endless("one")});
  const auto two = std::make_shared<sw::queue_runner>(on.queue, std::vector{on.endless("two")});
  const auto started = sw::start_queue_runners(&on.session, on.threads, std::vector{one, two});
  CHECK(names_of(started) == std::vector<std::string>{"QueueRunnerThread-numbers-one", "QueueRunnerThread-numbers-close_on_stop",
                                                      "QueueRunnerThread-numbers-two", "QueueRunnerThread-numbers-close_on_stop"});
  on.threads.request_stop();
  CHECK_NOTHROW(on.threads.join());
}

TEST_CASE("QR-6 no session is an error, no runners are a warning", "[session][queue_runner]") {
  const log_capture log;
  rig on;
  const auto runner = std::make_shared<sw::queue_runner>(on.queue, std::vector{on.endless()});
  CHECK_THROWS_WITH(sw::start_queue_runners(nullptr, on.threads, std::vector{runner}),
                    ContainsSubstring("Cannot start queue runners: No default session is registered"));
  CHECK_THROWS_AS(sw::start_queue_runners(&on.session, on.threads, std::vector{std::shared_ptr<sw::queue_runner>()}),
                  sw::invalid_argument_error);
  CHECK(sw::start_queue_runners(&on.session, on.threads, {}).empty());
  CHECK(log.contains(sw::log_level::warning, "no queue runners were defined"));
}

TEST_CASE("after a stop that is cleared, a runner fills its queue again and nothing is lost", "[session][queue_runner]") {
  rig on;
  std::vector<std::int64_t> many(20);
  std::ranges::generate(many, [next = std::int64_t{0}]() mutable { return next++; });
  sw::queue_runner runner(on.queue, {sw::enqueue_from(on.queue, many)});
  runner.create_threads(&on.session, &on.threads, true);
  REQUIRE(on.time->wait_for_pending(2));  // one waits for space, one for a stop
  on.threads.request_stop();
  on.threads.join();
  CHECK(on.queue.is_closed());
  on.threads.clear_stop();
  CHECK(runner.create_threads(&on.session, &on.threads, true).size() == 2);
  CHECK(on.take_all() == many);
  CHECK_FALSE(on.threads.should_stop());
}

TEST_CASE("producers that a stop interrupted continue after it, although one at its end has closed the queue", "[session][queue_runner]") {
  rig on;
  std::atomic<bool> is_held = true;
  sw::queue_runner runner(on.queue, {{"late",
                                      [&](const std::stop_token& stop) {
                                        if (is_held) { on.threads.wait_for_stop(); }
                                        end(stop);
                                      }},
                                     {"interrupted", [&](std::stop_token) {
                                        if (is_held) { return on.threads.wait_for_stop(); }
                                        if (on.next == 3) { throw sw::out_of_range_error("done"); }
                                        on.queue.enqueue(on.next++);
                                      }}});
  runner.create_threads(&on.session, &on.threads, true);
  on.threads.request_stop();
  on.threads.join();
  on.threads.clear_stop();
  is_held = false;
  runner.create_threads(&on.session, &on.threads, true);
  CHECK(on.take_all() == std::vector<std::int64_t>{0, 1, 2});
  CHECK_FALSE(on.threads.should_stop());
}

TEST_CASE("a queue that other code closed stays closed", "[session][queue_runner]") {
  rig on;
  sw::queue_runner runner(on.queue, {{"ends", end}});
  on.queue.close();
  join_all(runner.create_threads(&on.session, nullptr, true));
  join_all(runner.create_threads(&on.session, nullptr, true));
  CHECK(on.queue.is_closed());
  CHECK(on.take_all().empty());
}

TEST_CASE("several threads may share an input: each element goes once", "[session][queue_runner]") {
  rig on;
  const auto op = sw::enqueue_from(on.queue, std::views::iota(std::int64_t{0}, std::int64_t{500}));
  CHECK(op.name == "numbers_enqueue");
  sw::queue_runner runner(on.queue, {op, op, op});
  runner.create_threads(&on.session, &on.threads, true);
  auto all = on.take_all();
  std::ranges::sort(all);
  CHECK(std::ranges::equal(all, std::views::iota(std::int64_t{0}, std::int64_t{500})));
}

TEST_CASE("an input is a range or a source, and elements made on the spot need not be copyable", "[session][queue_runner]") {
  rig on;
  std::vector<std::int64_t> numbers = one_to_five;
  auto three = data::take(data::source(numbers), 3);
  sw::queue_runner taking(on.queue, {sw::enqueue_from(on.queue, three, "three")});
  join_all(taking.create_threads(&on.session, nullptr, true));
  CHECK(on.take_all() == std::vector<std::int64_t>{1, 2, 3});

  data::fifo_queue<std::unique_ptr<int>> queue;
  auto made = std::views::iota(0, 3) | std::views::transform([](int i) { return std::make_unique<int>(i); });
  sw::queue_runner moving(queue, {sw::enqueue_from(queue, made)});
  join_all(moving.create_threads(&on.session, nullptr, true));
  CHECK(*queue.dequeue() == 0);
  CHECK(*queue.dequeue() == 1);
}

TEST_CASE("an input that fails fails the run", "[session][queue_runner]") {
  rig on;
  auto broken = std::views::iota(std::int64_t{0}) |
                std::views::transform([](std::int64_t i) { return i < 2 ? i : throw sw::data_loss_error("bad record"); });
  sw::queue_runner runner(on.queue, {sw::enqueue_from(on.queue, broken)});
  runner.create_threads(&on.session, &on.threads, true);
  CHECK(on.take_all() == std::vector<std::int64_t>{0, 1});
  CHECK_THROWS_AS(on.threads.join(), sw::data_loss_error);
}
