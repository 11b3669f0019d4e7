// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"

#include <stepwell/base/random.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <random>
#include <set>
#include <vector>

namespace sw = stepwell;

namespace {
using block = std::array<std::uint32_t, 4>;

constexpr std::uint32_t ones = 0xffffffff;
static_assert(sw::philox4x32({0, 0, 0, 0}, {0, 0}) == block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
static_assert(std::uniform_random_bit_generator<sw::random_stream>);

std::vector<std::uint64_t> order_of(const sw::random_permutation& permutation) {
  std::vector<std::uint64_t> order;
  for (std::uint64_t i = 0; i < permutation.size(); ++i) { order.push_back(permutation(i)); }
  return order;
}

bool is_bijection(const sw::random_permutation& permutation) {
  auto order = order_of(permutation);
  std::ranges::sort(order);
  for (std::uint64_t i = 0; i < order.size(); ++i) {
    if (order[i] != i) { return false; }
  }
  return true;
}

}  // namespace

TEST_CASE("Philox gives the published known answers", "[base][random]") {
  CHECK(sw::philox4x32({0, 0, 0, 0}, {0, 0}) == block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(sw::philox4x32({ones, ones, ones, ones}, {ones, ones}) == block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(sw::philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
        block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("random bits change with the seed, the stream and the index, high halves included", "[base][random]") {
  const std::uint64_t high = std::uint64_t{1} << 32;
  std::set<std::uint64_t> seen;
  for (const auto value : {std::uint64_t{0}, std::uint64_t{1}, high}) {
    seen.insert(sw::random_bits(value, 7, 7));
    seen.insert(sw::random_bits(8, value, 8));
    seen.insert(sw::random_bits(9, 9, value));
  }
  CHECK(seen.size() == 9);
}

TEST_CASE("a stream continues at its saved state", "[base][random]") {
  sw::random_stream stream(3, 4);
  for (int i = 0; i < 10; ++i) { (void)stream(); }
  CHECK(stream.position() == 10);
  const std::vector<std::uint64_t> saved(stream.state().begin(), stream.state().end());
  const auto next = stream();
  sw::random_stream other;
  std::ranges::copy(saved, other.state().begin());
  CHECK(other() == next);
  stream.seek(10);
  CHECK(stream() == next);
  CHECK(sw::random_bits(3, 4, 10) == next);
}

TEST_CASE("uniform numbers fill [0, 1) evenly and never reach 1", "[base][random]") {
  sw::random_stream stream(11);
  std::array<int, 16> bins{};
  double sum = 0;
  constexpr int count = 64'000;
  for (int i = 0; i < count; ++i) {
    const double value = stream.uniform();
    REQUIRE((value >= 0 && value < 1));
    ++bins[static_cast<std::size_t>(value * 16)];
    sum += value;
  }
  double chi_square = 0;
  for (const int bin : bins) { chi_square += (bin - count / 16.0) * (bin - count / 16.0) / (count / 16.0); }
  CHECK(chi_square < 40);  // 15 degrees of freedom: one seed in 2000 exceeds 40
  CHECK(sum / count == Approx(0.5).margin(0.005));
}

TEST_CASE("normal numbers have mean 0, variance 1, kurtosis 3, and are finite", "[base][random]") {
  sw::random_stream stream(12);
  double sum = 0;
  double squares = 0;
  double fourths = 0;
  constexpr int count = 100'000;
  for (int i = 0; i < count; ++i) {
    const double value = stream.normal();
    REQUIRE(std::isfinite(value));
    sum += value;
    squares += value * value;
    fourths += value * value * value * value;
  }
  CHECK(stream.position() == 2 * count);
  CHECK(sum / count == Approx(0).margin(0.015));
  CHECK(squares / count == Approx(1).margin(0.02));
  CHECK(fourths / count == Approx(3).margin(0.15));
}

TEST_CASE("a permutation reaches each index exactly once, whatever its size", "[base][random]") {
  for (std::uint64_t size = 1; size <= 300; ++size) {
    INFO("size " << size);
    CHECK(is_bijection({size, 5, size}));
  }
  for (const std::uint64_t size : std::vector<std::uint64_t>{1023, 1024, 1025, 4095, 4096, 4097, 10'000, 60'000, 65'536, 65'537}) {
    INFO("size " << size);
    CHECK(is_bijection({size, 6, 0}));
  }
}

TEST_CASE("a permutation of nothing has no elements", "[base][random]") { CHECK(order_of({0, 1, 1}).empty()); }

TEST_CASE("a permutation of a huge range stays inside it and repeats nothing", "[base][random]") {
  const std::uint64_t size = (std::uint64_t{1} << 62) - 3;
  const sw::random_permutation permutation(size, 1, 2);
  std::set<std::uint64_t> seen;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    seen.insert(permutation(size - 1 - i));
    seen.insert(permutation(i));
  }
  CHECK(seen.size() == 2000);
  CHECK(*seen.rbegin() < size);
}

TEST_CASE("each seed and each stream orders anew", "[base][random]") {
  const auto first = order_of({100, 1, 0});
  CHECK(first == order_of({100, 1, 0}));
  CHECK(first != order_of({100, 2, 0}));
  CHECK(first != order_of({100, 1, 1}));
  std::vector<std::uint64_t> sorted(100);
  for (std::uint64_t i = 0; i < 100; ++i) { sorted[i] = i; }
  CHECK(first != sorted);
}

TEST_CASE("over many streams each index goes everywhere about equally often", "[base][random]") {
  constexpr int streams = 10'000;
  for (const std::uint64_t size : std::vector<std::uint64_t>{2, 3, 5, 10, 20}) {
    std::vector<std::vector<int>> went(size, std::vector<int>(size));
    for (std::uint64_t stream = 0; stream < streams; ++stream) {
      const sw::random_permutation permutation(size, 42, stream);
      for (std::uint64_t i = 0; i < size; ++i) { ++went[i][permutation(i)]; }
    }
    const double expected = streams / static_cast<double>(size);
    for (const auto& from : went) {
      for (const int count : from) {
        INFO("size " << size);
        CHECK(count == Approx(expected).margin(4.5 * std::sqrt(expected)));
      }
    }
  }
}

TEST_CASE("an order shares no bits with the random stream of the same seed", "[base][random]") {
  // The mixing word of round 0 is word 2 of the block; `random_bits` returns words 0 and 1.
  const auto words = sw::detail::random_block(1, 2, 3);
  CHECK(sw::random_bits(1, 2, 3) == (std::uint64_t{words[1]} << 32 | words[0]));
  CHECK(words[2] != words[0]);
}
