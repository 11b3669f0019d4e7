// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"

#include <stepwell/data/queue.hpp>
#include <stepwell/data/source.hpp>

#include <array>
#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace sw = stepwell;
namespace data = stepwell::data;

static_assert(data::batch_source<data::fifo_queue<int>>);
static_assert(data::batch_source<data::fifo_queue<std::unique_ptr<int>>>);
static_assert(!data::seekable_source<data::fifo_queue<int>>, "what was taken out cannot come back");
static_assert(std::is_same_v<data::batch_of<data::fifo_queue<int>>, int>);
static_assert(!std::is_move_constructible_v<data::fifo_queue<int>>, "threads refer to it");

namespace {

/// A small queue on a manual clock. Each thread that waits in it is a pending alarm.
struct small_queue {
  explicit small_queue(std::size_t capacity = 2) : queue({.capacity = capacity, .name = "small", .clock = time}) {}

  /// Starts a thread that enqueues `value`. Returns when the value is enqueued or the thread waits.
  std::future<void> blocked_producer(int value) {
    auto producer = std::async(std::launch::async, [this, value] { queue.enqueue(value); });
    REQUIRE(time->wait_for_pending(++blocked));
    return producer;
  }
  /// Starts a thread that waits for an element. The result is empty at the end of the queue.
  std::future<std::optional<int>> blocked_consumer() {
    auto consumer = std::async(std::launch::async, [this]() -> std::optional<int> {
      try {
        return queue.dequeue();
      } catch (const sw::out_of_range_error&) { return std::nullopt; }
    });
    REQUIRE(time->wait_for_pending(++blocked));
    return consumer;
  }

  std::shared_ptr<sw::manual_clock> time = std::make_shared<sw::manual_clock>();
  data::fifo_queue<int> queue;
  std::size_t blocked = 0;  // threads started so far; a test releases none of them before all are started
};

}  // namespace

TEST_CASE("elements come out in the order in which they were put in", "[data][fifo_queue]") {
  small_queue on;
  on.queue.enqueue(1);
  on.queue.enqueue(2);
  CHECK(on.queue.size() == 2);
  CHECK(on.queue.capacity() == 2);
  CHECK(on.queue.name() == "small");
  CHECK(on.queue.dequeue() == 1);
  on.queue.enqueue(3);
  CHECK(on.queue.dequeue() == 2);
  CHECK(on.queue.dequeue() == 3);
  CHECK(on.queue.size() == 0);
}

TEST_CASE("a full queue blocks its producers until something is taken out", "[data][fifo_queue]") {
  small_queue on;
  on.queue.enqueue(1);
  on.queue.enqueue(2);
  auto third = on.blocked_producer(3);
  CHECK(on.queue.size() == 2);
  CHECK(on.queue.dequeue() == 1);
  third.get();
  CHECK(on.queue.dequeue() == 2);
  CHECK(on.queue.dequeue() == 3);
}

TEST_CASE("an empty queue blocks its consumers until something is put in", "[data][fifo_queue]") {
  small_queue on;
  auto consumer = on.blocked_consumer();
  on.queue.enqueue(7);
  CHECK(consumer.get() == 7);
}

TEST_CASE("a closed queue returns its elements, and then the end", "[data][fifo_queue]") {
  small_queue on;
  on.queue.enqueue(1);
  CHECK_FALSE(on.queue.is_closed());
  CHECK(on.queue.close());
  CHECK(on.queue.is_closed());
  CHECK_FALSE(on.queue.close());
  CHECK(on.queue.dequeue() == 1);
  CHECK_THROWS_AS(on.queue.dequeue(), sw::out_of_range_error);
  CHECK_THROWS_WITH(on.queue.dequeue(), ContainsSubstring("small") && ContainsSubstring("is closed and has insufficient elements"));
}

TEST_CASE("a closed queue refuses what is new, and the element stays with its producer", "[data][fifo_queue]") {
  data::fifo_queue<std::string> queue({.capacity = 1, .name = "words"});
  queue.close();
  std::string word = "a word too long to stand inside the string itself";
  CHECK_THROWS_AS(queue.enqueue(std::move(word)), sw::cancelled_error);
  CHECK(word == "a word too long to stand inside the string itself");
  CHECK_THROWS_WITH(queue.enqueue(word), ContainsSubstring("words") && ContainsSubstring("is closed"));
}

TEST_CASE("QR-1 closing keeps pending enqueues, which reach the consumer before the end", "[data][fifo_queue]") {
  small_queue on(1);
  on.queue.enqueue(1);
  auto second = on.blocked_producer(2);
  on.queue.close();
  CHECK(on.queue.dequeue() == 1);
  CHECK(on.queue.dequeue() == 2);  // waits for the producer if its element has not arrived yet
  second.get();
  CHECK_THROWS_AS(on.queue.dequeue(), sw::out_of_range_error);
}

TEST_CASE("QR-1 closing with cancellation ends pending enqueues and keeps the elements of the queue", "[data][fifo_queue]") {
  small_queue on(1);
  on.queue.enqueue(1);
  auto second = on.blocked_producer(2);
  auto third = on.blocked_producer(3);
  CHECK(on.queue.close(true));
  CHECK_THROWS_AS(second.get(), sw::cancelled_error);
  CHECK_THROWS_WITH(third.get(), ContainsSubstring("cancelled"));
  CHECK(on.queue.dequeue() == 1);
  CHECK_THROWS_AS(on.queue.dequeue(), sw::out_of_range_error);
}

TEST_CASE("pending enqueues that a first close kept, a second one can cancel", "[data][fifo_queue]") {
  small_queue on(1);
  on.queue.enqueue(1);
  auto second = on.blocked_producer(2);
  CHECK(on.queue.close());
  CHECK_FALSE(on.queue.close(true));
  CHECK_THROWS_AS(second.get(), sw::cancelled_error);
  CHECK(on.queue.dequeue() == 1);
  CHECK_THROWS_AS(on.queue.dequeue(), sw::out_of_range_error);
}

TEST_CASE("closing wakes all consumers", "[data][fifo_queue]") {
  small_queue on;
  auto first = on.blocked_consumer();
  auto second = on.blocked_consumer();
  on.queue.close();
  CHECK(first.get() == std::nullopt);
  CHECK(second.get() == std::nullopt);
}

TEST_CASE("a queue is a source: the same batch until it is left behind, null at the end", "[data][fifo_queue]") {
  small_queue on;
  on.queue.enqueue(1);
  on.queue.enqueue(2);
  on.queue.close();
  REQUIRE(on.queue.peek() != nullptr);
  const auto* first = on.queue.peek();
  CHECK(*first == 1);
  CHECK(on.queue.peek() == first);
  CHECK(on.queue.size() == 1);
  on.queue.advance();
  CHECK(*on.queue.peek() == 2);
  on.queue.advance();
  CHECK(on.queue.peek() == nullptr);
  on.queue.advance();
  CHECK(on.queue.peek() == nullptr);
}

TEST_CASE("a batch may be left behind without a look at it", "[data][fifo_queue]") {
  small_queue on;
  on.queue.enqueue(1);
  on.queue.enqueue(2);
  on.queue.advance();
  CHECK(*on.queue.peek() == 2);
}

TEST_CASE("a loop that waits for a batch is woken by the end and by a cancellation", "[data][fifo_queue]") {
  for (const bool cancels : {false, true}) {
    small_queue on;
    auto looked = std::async(std::launch::async, [&] { return on.queue.peek() == nullptr; });
    REQUIRE(on.time->wait_for_pending(1));
    on.queue.close(cancels);
    CHECK(looked.get());
  }
}

TEST_CASE("a queue can be viewed like any source", "[data][fifo_queue]") {
  small_queue on;
  on.queue.enqueue(1);
  on.queue.enqueue(2);
  auto one = data::take(on.queue, 1);
  CHECK(one.name() == "small");
  CHECK(*one.peek() == 1);
  one.advance();
  CHECK(one.peek() == nullptr);
  CHECK(on.queue.dequeue() == 2);
}

TEST_CASE("a queue that is opened again continues with its elements", "[data][fifo_queue]") {
  small_queue on;
  on.queue.enqueue(1);
  on.queue.close(true);
  on.queue.reopen();
  CHECK_FALSE(on.queue.is_closed());
  on.queue.enqueue(2);
  CHECK(on.queue.dequeue() == 1);
  CHECK(on.queue.dequeue() == 2);
  auto consumer = on.blocked_consumer();
  on.queue.enqueue(3);
  CHECK(consumer.get() == 3);
}

TEST_CASE("elements need not be copyable", "[data][fifo_queue]") {
  data::fifo_queue<std::unique_ptr<int>> queue;
  queue.enqueue(std::make_unique<int>(5));
  queue.enqueue(std::make_unique<int>(6));
  CHECK(*queue.dequeue() == 5);
  CHECK(**queue.peek() == 6);
}

TEST_CASE("a queue that can hold nothing is refused", "[data][fifo_queue]") {
  CHECK_THROWS_AS(data::fifo_queue<int>({.capacity = 0}), sw::invalid_argument_error);
}

TEST_CASE("many producers and consumers: nothing is lost or doubled, and each producer's order is kept", "[data][fifo_queue]") {
  constexpr int producers = 4;
  constexpr int each = 2'000;
  small_queue on(3);
  std::array<std::vector<int>, 3> taken;
  {
    std::vector<std::jthread> consumers;
    for (auto& mine : taken) {
      consumers.emplace_back([&on, &mine] {
        try {
          for (;;) { mine.push_back(on.queue.dequeue()); }
        } catch (const sw::out_of_range_error&) {  // the end of the queue
        }
      });
    }
    {
      std::vector<std::jthread> feeding;
      for (int producer = 0; producer < producers; ++producer) {
        feeding.emplace_back([&on, producer] {
          for (int i = 0; i < each; ++i) { on.queue.enqueue(producer * each + i); }
        });
      }
    }
    on.queue.close();
  }
  std::vector<int> times(producers * each, 0);
  bool is_in_order = true;
  for (const auto& mine : taken) {
    std::array<int, producers> last{-1, -1, -1, -1};
    for (const int value : mine) {
      auto& before = last[static_cast<std::size_t>(value / each)];
      is_in_order = is_in_order && before < value;
      before = value;
      ++times[static_cast<std::size_t>(value)];
    }
  }
  CHECK(is_in_order);
  CHECK(times == std::vector<int>(producers * each, 1));
}
