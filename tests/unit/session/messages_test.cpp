// SPDX-License-Identifier: Apache-2.0
//
// Tests of messages that name a thread, a queue, a source or a hook. Each message is compared in full.
#include "support/catch.hpp"
#include "support/log_capture.hpp"
#include "support/toy_model.hpp"

#include <stepwell/base/error.hpp>
#include <stepwell/data/queue.hpp>
#include <stepwell/model/model_session.hpp>
#include <stepwell/protocol/any_hook.hpp>
#include <stepwell/threads/coordinator.hpp>
#include <stepwell/threads/queue_runner.hpp>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sw = stepwell;

namespace {

/// Returns the message of the error that `action` throws.
template<class Action>
std::string message_of(Action action) {
  try {
    action();
  } catch (const sw::error& failure) { return failure.cause().message; }
  return "nothing was thrown";
}

/// A hook with state under the name "average".
struct named_hook {
  float value = 0;
  static constexpr std::string_view state_name = "average";
  sw::variable_list variables() { return sw::variables({{"value", value}}); }
  void after_run(auto&, const auto&) {}
};
struct other_named_hook : named_hook {};

struct named_source {
  std::int64_t present = 1;
  const std::int64_t* peek() { return &present; }
  void advance() { ++present; }
  std::uint64_t position() const { return static_cast<std::uint64_t>(present); }
  void seek(std::uint64_t to) { present = static_cast<std::int64_t>(to); }
  static std::string name() { return "digits"; }
};

/// Fails in one of its calls.
struct failing_hook {
  std::int64_t fails_at;
  std::string point;
  void fail(const std::string& at) const {
    if (at == point) { throw std::runtime_error("no more paper"); }
  }
  void begin() { fail("begin"); }
  void before_run(auto& context) {
    if (context.global_step() + 1 == fails_at) { fail("before_run"); }
  }
  void after_run(auto& context, const auto&) {
    if (context.global_step() == fails_at) { fail("after_run"); }
  }
  void end(auto& /*session*/) { fail("end"); }
};

void do_nothing(const std::stop_token&) {}

}  // namespace

TEST_CASE("a message about a thread names the thread", "[session][messages]") {
  sw::coordinator threads;
  CHECK(message_of([&] { (void)threads.make_thread("reader", nullptr); }) ==
        "the thread \"reader\" has no function to run; give it a function");
  CHECK(message_of([] { const sw::coordinated_thread thread("reader", nullptr); }) ==
        "the thread \"reader\" has no function to run; give it a function");
  CHECK(message_of([] {
          sw::coordinated_thread thread("reader", [] {});
          thread.start();
          thread.start();
        }) == "could not start the thread \"reader\": it was started before; make a new one");
}

TEST_CASE("a message about a thread that fails names the thread", "[session][messages]") {
  const sw::test::log_capture log;
  sw::coordinated_thread alone("reader", [] { throw std::runtime_error("the disk is gone"); });
  alone.start();
  alone.join();
  CHECK(log.contains(sw::log_level::error, "the thread \"reader\" ended with: the disk is gone"));
}

TEST_CASE("a message about a queue names the queue", "[session][messages]") {
  using queue = sw::data::fifo_queue<int>;
  CHECK(message_of([] { queue({.capacity = 0, .name = "numbers"}); }) == "the queue \"numbers\" has the capacity 0; give it at least 1");
  queue numbers({.capacity = 2, .name = "numbers"});
  numbers.close();
  CHECK(message_of([&] { numbers.enqueue(1); }) == "the queue \"numbers\" is closed");
  CHECK(message_of([&] { (void)numbers.dequeue(); }) ==
        "the queue \"numbers\" is closed and has insufficient elements (requested 1, current size 0)");
  CHECK(message_of([] { sw::data::shuffle_queue<int>({.capacity = 2, .min_after_dequeue = 2, .name = "numbers"}); }) ==
        "the queue \"numbers\" has min_after_dequeue 2 and capacity 2: no element could be dequeued; increase the capacity");
}

TEST_CASE("a message about a queue runner names the queue", "[session][messages]") {
  sw::data::fifo_queue<int> numbers({.capacity = 2, .name = "numbers"});
  CHECK(message_of([&] { sw::queue_runner(numbers, {}); }) == "the queue runner of \"numbers\" has no enqueue operations; give it one");
  CHECK(message_of([&] { sw::queue_runner(numbers, {{"nothing", nullptr}}); }) ==
        "the queue runner of \"numbers\" has an enqueue operation without a function");
  CHECK(message_of([&] { sw::queue_runner(numbers, {{"something", do_nothing}}, {.queue_closed = {}}); }) ==
        "the queue runner of \"numbers\" has an empty queue_closed, so its threads could never end; leave it out, or name an error kind");
  const auto op = sw::enqueue_from(numbers, std::vector<int>{});
  CHECK(message_of([&] { op.run({}); }) == "\"numbers_enqueue\" is at the end of its input");
}

TEST_CASE("a message about two of one name gives the name", "[session][messages]") {
  sw::test::adding_model model;
  sw::monitored_session session(model);
  named_source source;
  named_source other;
  CHECK(message_of([&] {
          auto loop = session.steps(source);
          REQUIRE(loop.begin() != loop.end());
          auto second = session.steps(other);
          (void)(second.begin() == second.end());
        }) == "two sources named \"digits\" are in use at once; give them different names");
  CHECK(message_of([] {
          sw::test::counting_model counting;
          sw::monitored_session stateful(counting, named_hook{}, other_named_hook{});
        }) == "two hooks save state under the name \"average\"; give them different names");
}

TEST_CASE("the log names the step and the hook, or the source, that has thrown", "[session][messages]") {
  using model_type = sw::test::adding_model;
  using raw = sw::model_session<model_type>;
  const std::vector<std::int64_t> batches{1, 2, 3};
  const sw::test::log_capture log;
  const auto lines = [&](const std::string& text) {
    const auto all = log.messages();
    return std::ranges::count_if(all, [&](const auto& message) { return message.text.find(text) != std::string::npos; });
  };
  model_type model;
  const auto train = [&](auto hook) {
    sw::monitored_session session(model, std::move(hook));
    session.run_all(batches);
    session.close();
  };
  const std::string name = "failing_hook ";
  CHECK_THROWS_AS(train(failing_hook{2, "before_run"}), std::runtime_error);
  CHECK(lines(name + "before_run failed at step 2: no more paper") == 1);
  CHECK_THROWS_AS(train(failing_hook{3, "after_run"}), std::runtime_error);
  CHECK(lines(name + "after_run failed at step 3: no more paper") == 1);
  CHECK_THROWS_AS(train(sw::any_hook<raw>(failing_hook{1, "after_run"})), std::runtime_error);
  CHECK(lines(name + "after_run failed at step 1: no more paper") == 1);
  CHECK_THROWS_AS(train(failing_hook{0, "begin"}), std::runtime_error);
  CHECK(lines(name + "begin failed at step 0: no more paper") == 1);
  CHECK_THROWS_AS(train(failing_hook{0, "end"}), std::runtime_error);
  CHECK(lines(name + "end failed at step 3: no more paper") == 1);
  model.before = [](std::int64_t batch) {
    if (batch == 2) { throw std::runtime_error("a fuse blew"); }
  };
  CHECK_THROWS_AS(train(failing_hook{0, ""}), std::runtime_error);
  CHECK(lines("the step failed at step 2: a fuse blew") == 1);
  model.before = nullptr;
  train(failing_hook{0, ""});
  CHECK(log.count(sw::log_level::error) == 6);
}
