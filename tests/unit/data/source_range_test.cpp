// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"

#include <stepwell/coro/generator.hpp>
#include <stepwell/data/source.hpp>

#include <range/v3/view/chunk.hpp>
#include <range/v3/view/iota.hpp>
#include <range/v3/view/transform.hpp>

#include <array>
#include <list>
#include <memory>
#include <ranges>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace data = stepwell::data;
using stepwell::generator;

using list_source = decltype(data::source(std::declval<std::vector<int>&>()));
static_assert(data::batch_source<list_source> && !data::seekable_source<list_source>);
static_assert(std::movable<list_source>);
static_assert(std::same_as<data::batch_of<list_source>, int>);
static_assert(std::same_as<data::batch_of<decltype(data::source(std::declval<generator<std::string>>()))>, std::string>);

namespace {

template<class Source>
auto drain(Source source) {
  std::vector<data::batch_of<Source>> all;
  for (; source.peek() != nullptr; source.advance()) { all.push_back(*source.peek()); }
  source.advance();
  REQUIRE(source.peek() == nullptr);
  return all;
}

generator<int> counted(int end, int& runs) {
  for (int i = 0; i < end; ++i) {
    ++runs;
    co_yield i;
  }
}

generator<int> breaks() {
  co_yield 1;
  throw std::runtime_error("no more data");
}

}  // namespace

TEST_CASE("a named range is referred to, an unnamed one is owned", "[data][source]") {
  std::vector<int> list{1, 2, 3};
  auto source = data::source(list);
  CHECK(source.peek() == list.data());
  CHECK(drain(std::move(source)) == list);
  CHECK(drain(data::source(std::vector<int>{4, 5})) == std::vector{4, 5});
  CHECK(drain(data::source(std::array<int, 0>())).empty());
  const std::list<std::string> words{"a", "b"};
  CHECK(drain(data::source(words)) == std::vector<std::string>{"a", "b"});
}

TEST_CASE("peek gives the same batch until advance", "[data][source]") {
  int runs = 0;
  auto source = data::source(counted(3, runs));
  CHECK(runs == 0);
  const int* const first = source.peek();
  CHECK(source.peek() == first);
  CHECK(*first == 0);
  CHECK(runs == 1);
  source.advance();
  CHECK(runs == 1);  // the next batch is not made before peek() is called
  CHECK(*source.peek() == 1);
}

TEST_CASE("advance without a look passes over one batch", "[data][source]") {
  int runs = 0;
  auto source = data::source(counted(3, runs));
  source.advance();
  source.advance();
  CHECK(*source.peek() == 2);
}

TEST_CASE("a source can be moved while it is in use", "[data][source]") {
  auto source = data::source(std::array{1, 2, 3});
  source.advance();
  auto moved = std::move(source);
  CHECK(drain(std::move(moved)) == std::vector{2, 3});
}

TEST_CASE("a source that was moved from says so", "[data][source]") {
  const auto check = [](auto source) {
    const auto moved = std::move(source);
    const auto message = ContainsSubstring("this source was moved from");
    CHECK_THROWS_WITH(source.peek(), message);  // NOLINT(bugprone-use-after-move)
    CHECK_THROWS_WITH(source.advance(), message);
  };
  std::vector<int> list{1, 2, 3};
  check(data::source(list));
  check(data::source(std::vector<int>{1}));
  check(data::transform(data::source(list), [](int i) { return i + 1; }));
  check(data::take(data::source(list), 2));
}

TEST_CASE("elements made on the spot are kept while they are looked at", "[data][source]") {
  const std::vector<int> list{1, 2, 3};
  int calls = 0;
  auto source = data::source(list | std::views::transform([&](int i) {
                               ++calls;
                               return std::make_unique<int>(i * i);
                             }));
  CHECK(**source.peek() == 1);
  CHECK(**source.peek() == 1);
  CHECK(calls == 1);
  source.advance();
  CHECK(**source.peek() == 4);
}

TEST_CASE("a view of range-v3 is a range too", "[data][source]") {
  auto source = data::source(::ranges::views::iota(0, 5) | ::ranges::views::transform([](int i) { return i * 10; }));
  CHECK(drain(std::move(source)) == std::vector{0, 10, 20, 30, 40});
}

TEST_CASE("an exception of the range comes out of peek", "[data][source]") {
  auto source = data::source(breaks());
  CHECK(*source.peek() == 1);
  source.advance();
  CHECK_THROWS_WITH(source.peek(), "no more data");
  CHECK(source.peek() == nullptr);
}

TEST_CASE("a source made of a range can have a name", "[data][source]") {
  std::vector<int> list{1};
  CHECK(data::name_of(data::source(list)).empty());
  const auto named = data::source(list, "training");
  CHECK(data::name_of(named) == "training");
}
