// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"

#include <stepwell/data/shuffled_batches.hpp>
#include <stepwell/data/source.hpp>

#include <concepts>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace data = stepwell::data;

namespace {

using list = std::vector<int>;
const list examples{0, 1, 2, 3, 4, 5, 6, 7, 8, 9};

auto shuffled() { return data::shuffled_batches(examples, {.batch_size = 3, .seed = 5, .name = "training"}); }
constexpr auto length = [](const list& batch) { return batch.size(); };

static_assert(data::seekable_source<decltype(data::transform(shuffled(), length))>);
static_assert(data::seekable_source<decltype(data::take(shuffled(), 1))>);
static_assert(data::seekable_source<decltype(data::take(data::transform(shuffled(), length), 1))>);
static_assert(!data::seekable_source<decltype(data::transform(data::source(list()), [](int i) { return i; }))>);
static_assert(!data::seekable_source<decltype(data::take(data::source(list()), 1))>);
static_assert(std::same_as<data::batch_of<decltype(data::transform(shuffled(), length))>, std::size_t>);

template<class Source>
auto drain(Source& source) {
  std::vector<data::batch_of<Source>> all;
  for (; source.peek() != nullptr; source.advance()) { all.push_back(*source.peek()); }
  return all;
}

}  // namespace

TEST_CASE("a transformed source gives the function of each batch, made once", "[data][transform]") {
  int calls = 0;
  auto source = data::transform(data::source(list{1, 2, 3}), [&](int i) {
    ++calls;
    return std::to_string(i);
  });
  const auto* const first = source.peek();
  CHECK(source.peek() == first);
  CHECK(drain(source) == std::vector<std::string>{"1", "2", "3"});
  CHECK(calls == 3);
  CHECK(source.peek() == nullptr);
}

TEST_CASE("a function that gives a part of the batch copies nothing", "[data][transform]") {
  std::vector<std::pair<int, list>> pairs{{1, {2, 3}}, {4, {5}}};
  auto source = data::transform(data::source(pairs), &std::pair<int, list>::second);
  CHECK(source.peek() == &pairs[0].second);
  source.advance();
  CHECK(source.peek() == &pairs[1].second);
}

TEST_CASE("a transformed batch may be one that can only be moved", "[data][transform]") {
  auto source = data::transform(data::source(list{7}), [](int i) { return std::make_unique<int>(i); });
  CHECK(**source.peek() == 7);
}

TEST_CASE("a transformed source seeks where its source does", "[data][transform]") {
  auto source = data::transform(shuffled(), [](const list& batch) { return batch.front(); });
  std::vector<int> firsts;
  for (int i = 0; i < 5; ++i, source.advance()) { firsts.push_back(*source.peek()); }
  CHECK(source.position() == 13);
  source.seek(3);
  CHECK(source.position() == 3);
  CHECK(*source.peek() == firsts[1]);
  CHECK(data::name_of(source) == "training");
}

TEST_CASE("take gives so many batches and looks no further", "[data][take]") {
  int calls = 0;
  auto all = data::transform(data::source(list{1, 2, 3, 4}), [&](int i) {
    ++calls;
    return i;
  });
  auto two = data::take(all, 2);
  CHECK(drain(two) == list{1, 2});
  CHECK(calls == 2);
  two.advance();
  CHECK(*all.peek() == 3);
  auto many = data::take(data::source(list{1}), 5);
  CHECK(drain(many) == list{1});
  auto none = data::take(shuffled(), 0);
  CHECK(none.peek() == nullptr);
}

TEST_CASE("a take that was sought ends where an unbroken one ends", "[data][take]") {
  auto unbroken = data::take(shuffled(), 9);
  for (int steps = 0; steps <= 9; ++steps) {
    auto resumed = data::take(shuffled(), 9);
    resumed.seek(unbroken.position());
    auto rest = data::take(shuffled(), 9);
    rest.seek(unbroken.position());
    const auto left = drain(rest);
    CHECK(left.size() == static_cast<std::size_t>(9 - steps));
    if (unbroken.peek() != nullptr) { CHECK(*resumed.peek() == *unbroken.peek()); }
    unbroken.advance();
  }
  CHECK(data::name_of(unbroken) == "training");
}

TEST_CASE("a take of a source that ends early can be sought to that end", "[data][take]") {
  struct three {
    const int* peek() { return at < 3 ? &at : nullptr; }
    void advance() { at = at < 3 ? at + 1 : at; }
    [[nodiscard]] std::uint64_t position() const { return static_cast<std::uint64_t>(at); }
    void seek(std::uint64_t position) { at = static_cast<int>(position); }
    int at = 0;
  };
  auto source = data::take(three(), 10);
  source.seek(2);
  CHECK(*source.peek() == 2);
  source.seek(3);
  CHECK(source.peek() == nullptr);
}

TEST_CASE("views of a named source leave it where they stop", "[data][take]") {
  auto source = shuffled();
  auto first = data::take(source, 2);
  CHECK(drain(first).size() == 2);
  CHECK(source.position() == 6);
  auto second = data::take(source, 1);
  CHECK(drain(second).size() == 1);
  CHECK(source.position() == 9);
}
