// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"

#include <stepwell/base/error.hpp>
#include <stepwell/data/shuffled_batches.hpp>

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace sw = stepwell;
namespace data = stepwell::data;

namespace {

/// A dataset with its own batch type, which can refill a used batch.
struct digits {
  struct batch_type {
    std::vector<int> labels;
  };
  [[nodiscard]] std::size_t size() const { return 10; }
  [[nodiscard]] batch_type batch(data::example_indices indices) const {
    ++made;
    batch_type filled;
    fill(indices, filled);
    return filled;
  }
  void gather(data::example_indices indices, batch_type& into) const {
    ++filled_again;
    fill(indices, into);
  }
  static void fill(data::example_indices indices, batch_type& into) {
    into.labels.clear();
    for (const auto index : indices) { into.labels.push_back(static_cast<int>(index) * 10); }
  }
  mutable int made = 0;
  mutable int filled_again = 0;
};

struct no_batches {
  [[nodiscard]] std::size_t size() const;
};

using digits_source = decltype(data::shuffled_batches(std::declval<digits&>(), {}));
static_assert(data::seekable_source<digits_source>);
static_assert(std::same_as<data::batch_of<digits_source>, digits::batch_type>);
static_assert(data::dataset<digits> && data::dataset<const digits&> && data::dataset<std::vector<std::string>>);
static_assert(!data::dataset<no_batches> && !data::dataset<int> && !data::dataset<std::set<int>>);

std::vector<int> numbers(int count) {
  std::vector<int> all(static_cast<std::size_t>(count));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

template<class Source>
std::vector<int> next(Source& source, int batches) {
  std::vector<int> seen;
  for (int i = 0; i < batches; ++i, source.advance()) { seen.insert(seen.end(), source.peek()->begin(), source.peek()->end()); }
  return seen;
}

std::vector<int> sorted(std::vector<int> values) {
  std::ranges::sort(values);
  return values;
}

}  // namespace

TEST_CASE("an epoch has every example once, and the next one in another order", "[data][shuffled_batches]") {
  const auto list = numbers(100);
  auto source = data::shuffled_batches(list, {.batch_size = 10, .seed = 1});
  const auto first = next(source, 10);
  CHECK(source.epoch() == 1);
  const auto second = next(source, 10);
  CHECK(sorted(first) == list);
  CHECK(sorted(second) == list);
  CHECK(first != second);
  CHECK(first != list);
  CHECK(source.position() == 200);
}

TEST_CASE("the order is a function of the seed", "[data][shuffled_batches]") {
  auto one = data::shuffled_batches(numbers(50), {.batch_size = 50, .seed = 1});
  auto same = data::shuffled_batches(numbers(50), {.batch_size = 50, .seed = 1});
  auto other = data::shuffled_batches(numbers(50), {.batch_size = 50, .seed = 2});
  CHECK(*one.peek() == *same.peek());
  CHECK(*one.peek() != *other.peek());
}

TEST_CASE("the last batch of an epoch is smaller, or left out", "[data][shuffled_batches]") {
  const auto list = numbers(10);
  auto whole = data::shuffled_batches(list, {.batch_size = 4});
  std::vector<std::size_t> sizes;
  for (int i = 0; i < 6; ++i, whole.advance()) { sizes.push_back(whole.peek()->size()); }
  CHECK(sizes == std::vector<std::size_t>{4, 4, 2, 4, 4, 2});
  auto dropping = data::shuffled_batches(list, {.batch_size = 4, .drop_remainder = true});
  for (const std::uint64_t position : std::vector<std::uint64_t>{0, 4, 10, 14, 20}) {
    CHECK(dropping.position() == position);
    CHECK(dropping.peek()->size() == 4);
    dropping.advance();
  }
}

TEST_CASE("a source continues after a seek exactly like one without a seek", "[data][shuffled_batches]") {
  const auto list = numbers(23);
  for (const bool drop : {false, true}) {
    const data::shuffle_options options{.batch_size = 5, .seed = 9, .drop_remainder = drop};
    for (int steps = 0; steps < 20; ++steps) {
      auto unbroken = data::shuffled_batches(list, options);
      static_cast<void>(next(unbroken, steps));
      static_cast<void>(unbroken.peek());  // peek() consumes nothing
      auto resumed = data::shuffled_batches(list, options);
      resumed.seek(unbroken.position());
      CHECK(resumed.position() == unbroken.position());
      CHECK(next(resumed, 10) == next(unbroken, 10));
    }
  }
}

TEST_CASE("seeking far is no work, and back is the same as before", "[data][shuffled_batches]") {
  auto source = data::shuffled_batches(numbers(1000), {.batch_size = 7, .seed = 3});
  const auto first = next(source, 3);
  source.seek(1'000'000'000'000'000);
  CHECK(source.epoch() == 1'000'000'000'000);
  CHECK(source.peek()->size() == 7);
  source.seek(0);
  CHECK(next(source, 3) == first);
}

TEST_CASE("the position stays right when the batch size changes", "[data][shuffled_batches]") {
  const auto list = numbers(20);
  auto small = data::shuffled_batches(list, {.batch_size = 2, .seed = 4});
  static_cast<void>(next(small, 3));
  auto large = data::shuffled_batches(list, {.batch_size = 7, .seed = 4});
  large.seek(small.position());
  CHECK(next(large, 2) == next(small, 7));
}

TEST_CASE("a dataset makes its own batches, and refills the one used before", "[data][shuffled_batches]") {
  const digits examples;
  auto source = data::shuffled_batches(examples, {.batch_size = 5});
  std::vector<int> labels;
  for (int i = 0; i < 2; ++i, source.advance()) {
    const auto& batch = source.peek()->labels;
    CHECK(source.peek()->labels.size() == 5);
    labels.insert(labels.end(), batch.begin(), batch.end());
  }
  CHECK(sorted(labels) == std::vector{0, 10, 20, 30, 40, 50, 60, 70, 80, 90});
  CHECK(examples.made == 1);
  CHECK(examples.filled_again == 1);
}

TEST_CASE("an owned dataset moves with its source", "[data][shuffled_batches]") {
  auto source = data::shuffled_batches(numbers(10), {.batch_size = 3, .name = "training"});
  const auto first = *source.peek();
  auto moved = std::move(source);
  CHECK(*moved.peek() == first);
  CHECK(data::name_of(moved) == "training");
}

TEST_CASE("shuffled batches of a dataset that has lost examples say so, also if the source was moved from", "[data][shuffled_batches]") {
  const auto message = ContainsSubstring("fewer examples than before");
  auto source = data::shuffled_batches(numbers(10), {.batch_size = 3});
  const auto moved = std::move(source);
  CHECK_THROWS_WITH(source.peek(), message);  // NOLINT(bugprone-use-after-move)
  auto list = numbers(10);
  auto of_list = data::shuffled_batches(list, {.batch_size = 3});
  list.resize(4);
  CHECK_THROWS_WITH(of_list.peek(), message);
}

TEST_CASE("options that can never give a batch are refused, with a reason", "[data][shuffled_batches]") {
  const auto list = numbers(10);
  const std::vector<int> nothing;
  CHECK_THROWS_AS(data::shuffled_batches(nothing, {}), sw::invalid_argument_error);
  CHECK_THROWS_AS(data::shuffled_batches(list, {.batch_size = 0}), sw::invalid_argument_error);
  CHECK_THROWS_AS(data::shuffled_batches(list, {.batch_size = 11, .drop_remainder = true}), sw::invalid_argument_error);
  auto larger = data::shuffled_batches(list, {.batch_size = 11});
  CHECK(larger.peek()->size() == 10);
}
