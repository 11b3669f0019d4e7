// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"

#include <stepwell/data/shuffled_batches.hpp>
#include <stepwell/data/source.hpp>

#include <cstdint>
#include <numeric>
#include <vector>

namespace data = stepwell::data;

namespace {

std::vector<int> numbers(int count) {
  std::vector<int> all(static_cast<std::size_t>(count));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

using shuffled = data::shuffled_source<std::vector<int>>;
static_assert(data::epoch_source<shuffled>);
static_assert(data::epoch_source<data::taken_source<shuffled>>);
static_assert(!data::epoch_source<data::range_source<std::vector<int>>>);

}  // namespace

TEST_CASE("a source with epochs ends after the last one", "[data][epochs]") {
  auto source = data::shuffled_batches(numbers(10), {.batch_size = 4, .epochs = 2});
  int batches = 0;
  std::size_t examples = 0;
  for (; source.peek() != nullptr; source.advance(), ++batches) { examples += source.peek()->size(); }
  CHECK(batches == 6);
  CHECK(examples == 20);
  CHECK(source.position() == 20);
  CHECK(source.epoch() == 2);
  CHECK_FALSE(source.is_last_of_epoch());
  source.advance();
  CHECK(source.position() == 20);
  source.seek(8);
  CHECK(source.peek() != nullptr);
  CHECK(data::shuffled_batches(numbers(10), {.epochs = 0}).peek() == nullptr);
}

TEST_CASE("the epoch of a batch and its last batch are visible, at the batch and after it", "[data][epochs]") {
  const bool drops = GENERATE(false, true);
  auto source = data::shuffled_batches(numbers(10), {.batch_size = 4, .drop_remainder = drops, .epochs = 2});
  const std::uint64_t each = drops ? 2 : 3;
  CHECK(source.batches_per_epoch() == each);
  CHECK(source.is_at_epoch_start());
  for (std::uint64_t i = 0; i < 2 * each; ++i) {
    CHECK(source.epoch() == i / each);
    CHECK(source.is_last_of_epoch() == (i % each == each - 1));
    source.advance();
    CHECK(source.is_at_epoch_start() == (i % each == each - 1));
  }
  CHECK(source.peek() == nullptr);
}

TEST_CASE("views of a source pass on its epoch and its fingerprint", "[data][epochs]") {
  auto source = data::take(data::transform(data::shuffled_batches(numbers(10), {.batch_size = 5, .seed = 3}),
                                           [](const std::vector<int>& b) { return b.size(); }),
                           3);
  CHECK(source.fingerprint() == "10 examples, seed 3");
  CHECK_FALSE(source.is_last_of_epoch());
  source.advance();
  CHECK(source.is_last_of_epoch());
  source.advance();
  CHECK(source.epoch() == 1);
  source.advance();
  CHECK_FALSE(source.is_last_of_epoch());  // three batches were taken
}

TEST_CASE("more epochs than positions can count are as many as can", "[data][epochs]") {
  auto source = data::shuffled_batches(numbers(10), {.batch_size = 4, .epochs = std::uint64_t{1} << 62});
  source.seek(std::uint64_t{1} << 62);
  CHECK(source.peek() != nullptr);
}

TEST_CASE("batches_in_order keeps the order of the dataset", "[data][epochs]") {
  auto source = data::batches_in_order(numbers(5), {.batch_size = 2, .epochs = 2});
  std::vector<int> seen;
  for (; source.peek() != nullptr; source.advance()) { seen.insert(seen.end(), source.peek()->begin(), source.peek()->end()); }
  CHECK(seen == std::vector<int>{0, 1, 2, 3, 4, 0, 1, 2, 3, 4});
  CHECK(source.fingerprint() == "5 examples, in order");
}
