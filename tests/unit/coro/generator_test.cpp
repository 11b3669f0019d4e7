// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"

#include <stepwell/coro/generator.hpp>

#include <concepts>
#include <iterator>
#include <memory>
#include <numeric>
#include <ranges>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using stepwell::generator;

static_assert(std::ranges::input_range<generator<int>> && !std::ranges::forward_range<generator<int>>);
static_assert(std::ranges::viewable_range<generator<int>> && !std::ranges::view<generator<int>>);
static_assert(std::copyable<std::ranges::iterator_t<generator<std::unique_ptr<int>>>>);
static_assert(std::movable<generator<int>> && !std::copy_constructible<generator<int>>);
static_assert(std::same_as<std::ranges::range_reference_t<generator<int>>, int&&>);
static_assert(std::same_as<std::ranges::range_reference_t<generator<const std::string&>>, const std::string&>);
static_assert(std::same_as<std::ranges::range_value_t<generator<const std::string&>>, std::string>);

namespace {

/// Yields 0, 1, ... without end; `runs` counts the elements produced.
generator<int> naturals(int& runs) {
  for (int i = 0;; ++i) {
    ++runs;
    co_yield std::move(i);
  }
}

generator<int> up_to(int end) {
  for (int i = 0; i < end; ++i) { co_yield i; }
}

generator<std::string> words() {
  const std::string kept = "a word that is too long for the small buffer";
  co_yield kept;
  co_yield "another word that is too long for the buffer";
  co_yield std::string("x");
}

generator<int> fails_after(int good) {
  for (int i = 0; i < good; ++i) { co_yield i; }
  throw std::runtime_error("the source broke");
}

struct tracked {
  explicit tracked(int& count) : alive(&count) { ++*alive; }
  tracked(const tracked&) = delete;
  tracked& operator=(const tracked&) = delete;
  ~tracked() { --*alive; }
  int* alive;
};

generator<int> holding(int& alive) {
  const tracked local(alive);
  co_yield 1;
  co_yield 2;
}

}  // namespace

TEST_CASE("a generator yields its values in order, and ends", "[coro][generator]") {
  std::vector<int> seen;
  for (const int value : up_to(4)) { seen.push_back(value); }
  CHECK(seen == std::vector{0, 1, 2, 3});
  for (const int value : up_to(0)) { FAIL(value); }
}

TEST_CASE("a generator that is not read does not run", "[coro][generator]") {
  int runs = 0;
  {
    const auto made = naturals(runs);
    static_cast<void>(made.begin());
  }
  CHECK(runs == 0);
}

TEST_CASE("take(n) runs the coroutine to its n-th value and no further", "[coro][generator]") {
  for (const int n : {0, 1, 5}) {
    int runs = 0;
    int sum = 0;
    for (const int value : naturals(runs) | std::views::take(n)) { sum += value; }
    CHECK(runs == n);
    CHECK(sum == n * (n - 1) / 2);
  }
}

TEST_CASE("an unnamed generator pipes through std::views", "[coro][generator]") {
  std::vector<int> seen;
  for (const int value : up_to(10) | std::views::filter([](const int& i) { return i % 2 == 1; }) |
                             std::views::transform([](int i) { return i * i; }) | std::views::drop(1)) {
    seen.push_back(value);
  }
  CHECK(seen == std::vector{9, 25, 49, 81});
}

TEST_CASE("begin continues where the last reader stopped", "[coro][generator]") {
  auto made = up_to(5);
  auto first = made.begin();
  CHECK(*first == 0);
  CHECK(*made.begin() == 0);
  ++first;
  CHECK(*made.begin() == 1);
  ++first;
  ++first;  // unread elements are skipped, but counted
  CHECK(*first == 3);
  auto moved = std::move(made);
  CHECK(*first == 3);
  ++first;
  CHECK(*moved.begin() == 4);
  ++first;
  CHECK(first == moved.end());
  CHECK(first == moved.end());
}

TEST_CASE("a yielded lvalue is copied, a temporary is not", "[coro][generator]") {
  std::vector<std::string> seen;
  for (std::string&& word : words()) { seen.push_back(std::move(word)); }
  CHECK(seen ==
        std::vector<std::string>{"a word that is too long for the small buffer", "another word that is too long for the buffer", "x"});
}

TEST_CASE("values that can only be moved can be taken out", "[coro][generator]") {
  auto boxes = []() -> generator<std::unique_ptr<int>> {
    for (int i = 0; i < 3; ++i) { co_yield std::make_unique<int>(i); }
  };
  int sum = 0;
  for (std::unique_ptr<int> box : boxes()) { sum += *box; }
  CHECK(sum == 3);
}

TEST_CASE("a generator of references yields the very objects", "[coro][generator]") {
  std::vector<std::string> list{"a", "b"};
  auto each = [](std::vector<std::string>& all) -> generator<std::string&> {
    for (auto& one : all) { co_yield one; }
  };
  for (std::string& one : each(list)) { one += "!"; }
  CHECK(list == std::vector<std::string>{"a!", "b!"});
}

TEST_CASE("an exception comes out where the next value would, and ends the sequence", "[coro][generator]") {
  auto made = fails_after(2);
  auto position = made.begin();
  CHECK(*position == 0);
  CHECK(*++position == 1);
  ++position;
  CHECK_THROWS_WITH(position == made.end(), "the source broke");
  CHECK(position == made.end());
  CHECK_THROWS_AS(std::ranges::distance(fails_after(0)), std::runtime_error);
}

TEST_CASE("the variables of a generator are destroyed with it, also if it has not ended", "[coro][generator]") {
  int alive = 0;
  for ([[maybe_unused]] const int value : holding(alive)) {
    CHECK(alive == 1);
    break;
  }
  CHECK(alive == 0);
  {
    auto one = holding(alive);
    auto other = holding(alive);
    CHECK(*one.begin() == 1);
    CHECK(*other.begin() == 1);
    one = std::move(other);
  }
  CHECK(alive == 0);
}
