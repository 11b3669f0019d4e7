// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"

#include <stepwell/data/queue.hpp>
#include <stepwell/data/source.hpp>

#include <algorithm>
#include <array>
#include <future>
#include <memory>
#include <numeric>
#include <thread>
#include <vector>

namespace sw = stepwell;
namespace data = stepwell::data;

static_assert(data::batch_source<data::shuffle_queue<int>>);
static_assert(!data::seekable_source<data::shuffle_queue<int>>);

namespace {

constexpr int count = 100;

/// Returns the elements of a closed queue into which 0, 1, ... were enqueued.
std::vector<int> order_of(std::uint64_t seed) {
  data::shuffle_queue<int> queue({.capacity = count, .seed = seed});
  for (int i = 0; i < count; ++i) { queue.enqueue(i); }
  queue.close();
  std::vector<int> order;
  for (; queue.peek() != nullptr; queue.advance()) { order.push_back(*queue.peek()); }
  return order;
}

}  // namespace

TEST_CASE("all elements come out, in an order of the seed's", "[data][shuffle_queue]") {
  std::vector<int> sorted(count);
  std::iota(sorted.begin(), sorted.end(), 0);
  auto first = order_of(1);
  CHECK(first == order_of(1));
  CHECK(first != order_of(2));
  CHECK(first != sorted);
  std::ranges::sort(first);
  CHECK(first == sorted);
}

TEST_CASE("each element is as likely to come out first as any other", "[data][shuffle_queue]") {
  constexpr int rounds = 4'000;
  std::array<int, 4> firsts{};
  for (std::uint64_t seed = 0; seed < rounds; ++seed) {
    data::shuffle_queue<int> queue({.capacity = firsts.size(), .seed = seed});
    for (int i = 0; i < static_cast<int>(firsts.size()); ++i) { queue.enqueue(i); }
    ++firsts[static_cast<std::size_t>(queue.dequeue())];
  }
  for (const int times : firsts) {  // the random numbers are fixed; the limit is five standard deviations
    CHECK(std::abs(times - rounds / 4) < 137);
  }
}

TEST_CASE("a shuffle queue keeps min_after_dequeue elements until it is closed", "[data][shuffle_queue]") {
  const auto time = std::make_shared<sw::manual_clock>();
  data::shuffle_queue<int> queue({.capacity = 4, .min_after_dequeue = 2, .clock = time});
  queue.enqueue(1);
  queue.enqueue(2);
  auto taken = std::async(std::launch::async, [&] { return queue.dequeue(); });
  REQUIRE(time->wait_for_pending(1));
  queue.enqueue(3);
  const int first = taken.get();
  CHECK((first >= 1 && first <= 3));
  auto rest = std::async(std::launch::async, [&] {
    const int second = queue.dequeue();
    return std::pair(second, queue.dequeue());
  });
  REQUIRE(time->wait_for_pending(1));
  CHECK(queue.size() == 2);
  queue.close();
  const auto [second, third] = rest.get();
  CHECK(first + second + third == 6);
  CHECK(queue.peek() == nullptr);
}

TEST_CASE("a full shuffle queue blocks its producers, and a cancellation sends them away", "[data][shuffle_queue]") {
  const auto time = std::make_shared<sw::manual_clock>();
  data::shuffle_queue<int> queue({.capacity = 2, .min_after_dequeue = 1, .clock = time});
  queue.enqueue(1);
  queue.enqueue(2);
  auto third = std::async(std::launch::async, [&] { queue.enqueue(3); });
  REQUIRE(time->wait_for_pending(1));
  queue.close(true);
  CHECK_THROWS_AS(third.get(), sw::cancelled_error);
  CHECK(queue.dequeue() + queue.dequeue() == 3);
  CHECK_THROWS_AS(queue.dequeue(), sw::out_of_range_error);
}

TEST_CASE("a shuffle queue out of which nothing could come is refused", "[data][shuffle_queue]") {
  CHECK_THROWS_AS(data::shuffle_queue<int>({.capacity = 0}), sw::invalid_argument_error);
  CHECK_THROWS_WITH(data::shuffle_queue<int>({.capacity = 5, .min_after_dequeue = 5, .name = "mixed"}),
                    ContainsSubstring("mixed") && ContainsSubstring("increase the capacity"));
}

TEST_CASE("many producers and consumers of a shuffle queue: nothing is lost or doubled", "[data][shuffle_queue]") {
  constexpr int producers = 4;
  constexpr int each = 1'000;
  data::shuffle_queue<int> queue({.capacity = 8, .min_after_dequeue = 4, .clock = std::make_shared<sw::manual_clock>()});
  std::array<std::vector<int>, 2> taken;
  {
    std::vector<std::jthread> consumers;
    for (auto& mine : taken) {
      consumers.emplace_back([&queue, &mine] {
        try {
          for (;;) { mine.push_back(queue.dequeue()); }
        } catch (const sw::out_of_range_error&) {  // the end of the queue
        }
      });
    }
    {
      std::vector<std::jthread> feeding;
      for (int producer = 0; producer < producers; ++producer) {
        feeding.emplace_back([&queue, producer] {
          for (int i = 0; i < each; ++i) { queue.enqueue(producer * each + i); }
        });
      }
    }
    queue.close();
  }
  std::vector<int> times(producers * each, 0);
  for (const auto& mine : taken) {
    for (const int value : mine) { ++times[static_cast<std::size_t>(value)]; }
  }
  CHECK(times == std::vector<int>(producers * each, 1));
}
