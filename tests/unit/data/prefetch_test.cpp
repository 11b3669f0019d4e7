// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"

#include <stepwell/base/error.hpp>
#include <stepwell/data/prefetch.hpp>
#include <stepwell/data/shuffled_batches.hpp>
#include <stepwell/data/source.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace sw = stepwell;
namespace data = stepwell::data;

namespace {

using numbers = std::vector<std::uint64_t>;

/// Numbers from 0 to 99. Reading the number `fails_at` fails `failures` times.
struct failing_source {
  std::uint64_t next = 0;
  std::uint64_t fails_at = 1000;
  std::shared_ptr<std::atomic<int>> failures = std::make_shared<std::atomic<int>>(1);

  const std::uint64_t* peek() const {
    if (next == fails_at && failures->fetch_sub(1) > 0) { throw sw::unavailable_error("the disk is away"); }
    return next < 100 ? &next : nullptr;
  }
  void advance() { next += next < 100 ? 1 : 0; }
  std::uint64_t position() const { return next; }
  void seek(std::uint64_t position) { next = position; }
};

/// The same numbers; cannot seek, and cannot be copied.
struct forward_source {
  forward_source() = default;
  forward_source(forward_source&&) = default;
  std::unique_ptr<int> not_copyable;
  failing_source numbers;
  const std::uint64_t* peek() const { return numbers.peek(); }
  void advance() { numbers.advance(); }
};

template<class Source>
numbers rest_of(Source& source) {
  numbers seen;
  while (const auto* number = source.peek()) {
    seen.push_back(*number);
    source.advance();
  }
  return seen;
}

numbers from_to(std::uint64_t first, std::uint64_t end) {
  numbers all;
  for (; first < end; ++first) { all.push_back(first); }
  return all;
}

using counter_ahead = decltype(data::prefetch(data::counter()));
using forward_ahead = decltype(data::prefetch(forward_source()));
static_assert(data::seekable_source<counter_ahead> && !data::epoch_source<counter_ahead>);
static_assert(data::batch_source<forward_ahead> && !data::seekable_source<forward_ahead>);

}  // namespace

TEST_CASE("prefetch gives the batches of its source in their order, from any number of threads", "[data][prefetch]") {
  const auto threads = GENERATE(std::size_t{1}, std::size_t{2}, std::size_t{5});
  const auto depth = GENERATE(std::size_t{1}, std::size_t{3}, std::size_t{64});
  auto source = data::prefetch(data::counter({.count = 200}), {.threads = threads, .depth = depth});
  CHECK(rest_of(source) == from_to(0, 200));
  CHECK(source.peek() == nullptr);
  source.advance();
  CHECK(source.position() == 200);
}

TEST_CASE("the position of a prefetched source is the position that was consumed, not the one that was read", "[data][prefetch]") {
  auto below = data::counter({.first = 10, .name = "n"});
  {
    auto source = data::prefetch(below, {.threads = 1, .depth = 16});
    for (std::uint64_t i = 0; i < 5; ++i) {
      CHECK(*source.peek() == 10 + i);
      CHECK(source.position() == i);
      source.advance();
      CHECK(source.position() == i + 1);
    }
    CHECK(source.name() == "n");
    CHECK(source.fingerprint() == "numbers from 10");
  }
  CHECK(below.position() == 5);  // the destructor moved it back
}

TEST_CASE("a seek of a prefetched source drops the batches that were read ahead", "[data][prefetch]") {
  auto source = data::prefetch(data::counter(), {.threads = 3, .depth = 8});
  CHECK(*source.peek() == 0);
  source.seek(50);
  CHECK(source.position() == 50);
  CHECK(*source.peek() == 50);
  source.advance();
  source.seek(3);
  source.advance();  // without a batch in between: nothing is read
  CHECK(source.position() == 4);
  CHECK(*source.peek() == 4);
  auto moved = std::move(source);
  CHECK(*moved.peek() == 4);
  moved.advance();
  CHECK(*moved.peek() == 5);
}

TEST_CASE("a prefetched source of shuffled batches continues bit by bit and knows its epochs", "[data][prefetch]") {
  const auto list = from_to(0, 23);
  const data::shuffle_options options{.batch_size = 5, .seed = 9, .epochs = 3};
  auto plain = data::shuffled_batches(list, options);
  for (std::uint64_t steps = 0; steps < 15; ++steps, plain.advance()) {
    auto resumed = data::prefetch(data::shuffled_batches(list, options), {.threads = 3, .depth = 4});
    resumed.seek(plain.position());
    auto same = plain;
    while (same.peek() != nullptr) {
      REQUIRE(resumed.peek() != nullptr);
      CHECK(*resumed.peek() == *same.peek());
      CHECK(resumed.epoch() == same.epoch());
      CHECK(resumed.is_last_of_epoch() == same.is_last_of_epoch());
      CHECK(resumed.is_at_epoch_start() == same.is_at_epoch_start());
      resumed.advance();
      same.advance();
    }
    CHECK(resumed.peek() == nullptr);
  }
}

TEST_CASE("an exception of a prefetched source arrives at its batch, and the batch can be tried again", "[data][prefetch]") {
  const auto threads = GENERATE(std::size_t{1}, std::size_t{3});
  auto source = data::prefetch(failing_source{.fails_at = 7}, {.threads = threads, .depth = 16});
  for (std::uint64_t i = 0; i < 7; ++i, source.advance()) { CHECK(*source.peek() == i); }
  CHECK_THROWS_AS(source.peek(), sw::unavailable_error);
  CHECK(source.position() == 7);
  CHECK(rest_of(source) == from_to(7, 100));
}

TEST_CASE("a source that cannot seek is read ahead by one thread", "[data][prefetch]") {
  forward_source below;
  below.numbers.fails_at = 7;
  auto source = data::prefetch(std::move(below), {.depth = 3});
  for (std::uint64_t i = 0; i < 7; ++i, source.advance()) { CHECK(*source.peek() == i); }
  CHECK_THROWS_AS(source.peek(), sw::unavailable_error);
  CHECK(rest_of(source) == from_to(7, 100));
  CHECK_THROWS_WITH(data::prefetch(forward_source(), {.threads = 2}), ContainsSubstring("threads is 2"));
}

TEST_CASE("parallel_map keeps the order, whichever call ends first", "[data][prefetch]") {
  // The call for an even number ends after that of the next odd number, which only happens if calls run in parallel.
  std::vector<std::atomic<int>> done(101);
  const auto square = [&done](std::uint64_t number) {
    if (number % 2 == 0) { done[number + 1].wait(0); }
    done[number] = 1;
    done[number].notify_all();
    return std::to_string(number * number);
  };
  auto source = data::parallel_map(data::counter({.count = 100}), square, {.threads = 2, .depth = 4});
  static_assert(std::same_as<data::batch_of<decltype(source)>, std::string>);
  for (std::uint64_t i = 0; i < 100; ++i, source.advance()) { CHECK(*source.peek() == std::to_string(i * i)); }
  CHECK(source.peek() == nullptr);
  CHECK(source.position() == 100);
}

TEST_CASE("parallel_map passes the position to a function that takes it", "[data][prefetch]") {
  const auto with_position = [](std::uint64_t number, std::uint64_t position) { return std::pair(number, position); };
  auto source = data::parallel_map(data::counter({.first = 5}), with_position, {.threads = 3});
  source.seek(20);
  for (std::uint64_t i = 20; i < 40; ++i, source.advance()) { CHECK(*source.peek() == std::pair(i + 5, i)); }
}

TEST_CASE("an exception of the function of parallel_map arrives at its batch", "[data][prefetch]") {
  std::atomic<int> failures = 1;
  const auto fragile = [&failures](std::uint64_t number) {
    if (number == 7 && failures.fetch_sub(1) > 0) { throw std::runtime_error("seven"); }
    return number;
  };
  auto source = data::parallel_map(data::counter({.count = 100}), fragile, {.threads = 4, .depth = 16});
  for (std::uint64_t i = 0; i < 7; ++i, source.advance()) { CHECK(*source.peek() == i); }
  CHECK_THROWS_WITH(source.peek(), "seven");
  CHECK(source.position() == 7);
  CHECK(rest_of(source) == from_to(7, 100));

  failures = 1;
  auto forward = data::parallel_map(forward_source(), fragile, {.threads = 2, .depth = 16});
  for (std::uint64_t i = 0; i < 7; ++i, forward.advance()) { CHECK(*forward.peek() == i); }
  CHECK_THROWS_WITH(forward.peek(), "seven");
  CHECK_THROWS_WITH(forward.peek(), "seven");  // it cannot go back
}

TEST_CASE("out_of_range_error of a source below is the end of the data there, too", "[data][prefetch]") {
  const auto until_nine = [](std::uint64_t number) { return number < 9 ? number : throw sw::out_of_range_error("nine"); };
  auto source = data::parallel_map(data::counter(), until_nine, {.threads = 2});
  for (std::uint64_t i = 0; i < 9; ++i, source.advance()) { CHECK(*source.peek() == i); }
  CHECK_THROWS_AS(source.peek(), sw::out_of_range_error);
}

TEST_CASE("a source that is destroyed while its threads wait or work joins them", "[data][prefetch]") {
  std::atomic<int> calls = 0;
  for (int round = 0; round < 50; ++round) {
    auto source = data::parallel_map(data::counter(), [&calls](std::uint64_t number) { return ++calls, number; },
                                     {.threads = 3, .depth = static_cast<std::size_t>(1 + round % 4)});
    for (int i = 0; i < round % 5; ++i) {
      static_cast<void>(source.peek());
      source.advance();
    }
  }
  const auto after = calls.load();
  CHECK(after == calls.load());
}

TEST_CASE("a prefetched source that was moved from says so", "[data][prefetch]") {
  const auto check = [](auto source) {
    const auto moved = std::move(source);
    const auto message = ContainsSubstring("this source was moved from");
    CHECK_THROWS_WITH(source.peek(), message);  // NOLINT(bugprone-use-after-move)
    CHECK_THROWS_WITH(source.advance(), message);
    CHECK_THROWS_WITH(source.position(), message);
    CHECK_THROWS_WITH(source.name(), message);
  };
  check(data::prefetch(data::counter()));
  check(data::parallel_map(data::counter(), [](std::uint64_t number) { return number; }));
  auto running = data::prefetch(data::counter());
  CHECK(*running.peek() == 0);
  check(std::move(running));
}

TEST_CASE("no threads and no depth are refused by name", "[data][prefetch]") {
  CHECK_THROWS_WITH(data::prefetch(data::counter(), {.threads = 0}), ContainsSubstring("prefetch: threads is 0"));
  CHECK_THROWS_WITH(data::prefetch(data::counter(), {.depth = 0}), ContainsSubstring("prefetch: depth is 0"));
  CHECK_THROWS_WITH(data::prefetch(data::counter(), {.depth = SIZE_MAX}), ContainsSubstring("; give it at most 1000000"));
  const auto same = [](std::uint64_t number) { return number; };
  CHECK_THROWS_WITH(data::parallel_map(data::counter(), same, {.depth = 0}), ContainsSubstring("parallel_map: depth is 0"));
  CHECK_THROWS_WITH(data::parallel_map(data::counter(), same, {.depth = SIZE_MAX / 2}), ContainsSubstring("; give it at most 1000000"));
}
