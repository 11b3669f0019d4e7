// SPDX-License-Identifier: Apache-2.0
#include <stepwell/checkpoint/snapshot.hpp>

#include "support/catch.hpp"
#include "support/sanitized.hpp"
#include "support/toy_variables.hpp"

#include <stepwell/base/error.hpp>
#include <stepwell/io/pool.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace sw = stepwell;
using sw::test::toy_at;
using namespace std::chrono_literals;

static_assert(std::is_nothrow_move_constructible_v<sw::snapshot> && !std::is_copy_constructible_v<sw::snapshot>);
static_assert(!std::is_copy_constructible_v<sw::snapshot_pool::buffer>);

TEST_CASE("a snapshot holds what the variables were, not what they become", "[checkpoint][snapshot]") {
  auto toy = toy_at(7);
  sw::snapshot_pool pool(sw::snapshot_size(toy.list()));
  const auto taken = sw::snapshot::capture(pool.acquire(), toy.list(), 7);
  toy.set_to(8);
  sw::test::toy_variables other;
  const auto report = sw::restore(other.list(), taken);
  CHECK(other == toy_at(7));
  CHECK(report.restored.size() == 4);
  CHECK(taken.step() == 7);
  CHECK(taken.size_bytes() == 8 + 400 + 24 + 1);
  CHECK(taken.find("layer/bias")->shape == sw::tensor_shape{3});
  CHECK(taken.find("no such") == nullptr);
}

TEST_CASE("the strings of a snapshot count in its size and in the memory that its pool holds", "[checkpoint][snapshot]") {
  std::string text(5000, 'x');
  std::vector<std::string> words{"one", "three"};
  float number = 1;
  const auto list = sw::variables({{"text", text}, {"words", words}, {"number", number}});
  sw::snapshot_pool pool(sw::snapshot_size(list), 1);
  const auto empty = pool.held_bytes();
  {
    auto taken = sw::snapshot::capture(pool.acquire(), list, 1);
    CHECK(taken.size_bytes() == 5000 + 8 + 4);
    CHECK(taken.held_bytes() == empty + 5008);
    CHECK(pool.held_bytes() == empty + 5008);
    text.resize(10);
  }
  auto shorter = sw::snapshot::capture(pool.acquire(), list, 2);
  CHECK(shorter.size_bytes() == 10 + 8 + 4);
  CHECK(pool.held_bytes() == empty + 18);
  shorter.leave_pool();
  CHECK(pool.held_bytes() == 0);
  CHECK(shorter.held_bytes() == empty + 18);
}

TEST_CASE("captured bytes are aligned to 64, and small ones to their size", "[checkpoint][snapshot]") {
  const auto taken = sw::test::toy_snapshot(1);
  for (const auto& entry : taken.entries()) {
    const auto unit = entry.bytes.size() < 64 ? std::bit_ceil(entry.bytes.size()) : 64;
    CHECK(reinterpret_cast<std::uintptr_t>(entry.bytes.data()) % unit == 0);
  }
}

TEST_CASE("small variables lie close together in a snapshot", "[checkpoint][snapshot]") {
  std::vector<std::array<float, 4>> values(1000);
  sw::variable_list list;
  for (std::size_t i = 0; i < values.size(); ++i) { list.emplace_back("v" + std::to_string(i), values[i]); }
  CHECK(sw::snapshot_size(list) == 16 * values.size());
}

TEST_CASE("a large snapshot that several threads copy equals the variables", "[checkpoint][snapshot]") {
  // Sizes that divide no part of the copy evenly, empty variables, strings, and many small variables in one part.
  std::vector<std::vector<std::uint64_t>> layers;
  for (const std::size_t count : {std::size_t{3'000'001}, std::size_t{0}, std::size_t{7}, std::size_t{1'700'003}, std::size_t{600'000}}) {
    auto& layer = layers.emplace_back(count);
    for (std::size_t i = 0; i < count; ++i) { layer[i] = i * 0x9E3779B97F4A7C15U + layers.size(); }
  }
  std::vector<std::array<float, 3>> small(5000);
  for (std::size_t i = 0; i < small.size(); ++i) { small[i].fill(static_cast<float>(i)); }
  std::vector<std::string> words{"one", "two"};
  sw::variable_list list;
  list.emplace_back("words", words);
  for (std::size_t i = 0; i < small.size(); ++i) { list.emplace_back("small/" + std::to_string(i), small[i]); }
  for (std::size_t i = 0; i < layers.size(); ++i) { list.emplace_back("layer/" + std::to_string(i), layers[i]); }
  sw::io::pool helpers(2);
  sw::snapshot_pool pool(sw::snapshot_size(list), 1);
  for (int round = 0; round < 3; ++round) {
    layers[0][42] = static_cast<std::uint64_t>(round);
    const auto taken = sw::snapshot::capture(pool.acquire(), list, round, &helpers);
    REQUIRE(taken.size_bytes() >= (std::size_t{32} << 20));
    bool are_equal = true;
    for (std::size_t i = 0; i < list.size(); ++i) {
      const auto& entry = taken.entries()[i];
      if (!entry.bytes.empty()) { are_equal &= std::memcmp(entry.bytes.data(), list[i].bytes().data(), entry.bytes.size()) == 0; }
    }
    CHECK(are_equal);
    CHECK(taken.find("words")->strings == words);
  }
}

TEST_CASE("elements of a device that lie in host memory are copied from there, others by copy_to", "[checkpoint][snapshot]") {
  struct fetched final : sw::device_elements {
    fetched(std::size_t count, bool shows_it) : elements(count), shows(shows_it) {
      for (std::size_t i = 0; i < count; ++i) { elements[i] = static_cast<float>(i % 1021); }
    }
    [[nodiscard]] sw::tensor_view description() const override {
      return {sw::dtype::float32, {static_cast<std::int64_t>(elements.size())}, {}};
    }
    void copy_to(std::span<std::byte> to) const override {
      ++copies;
      std::memcpy(to.data(), elements.data(), to.size());
    }
    void copy_from(std::span<const std::byte>) override {}
    [[nodiscard]] std::span<const std::byte> host_bytes() const override {
      return shows ? std::as_bytes(std::span(elements)) : std::span<const std::byte>();
    }
    std::vector<float> elements;
    bool shows;
    mutable int copies = 0;
  };
  constexpr std::size_t large = std::size_t{9} << 20;  // elements: other threads take part in the copy
  const auto in_host = std::make_shared<fetched>(large, true);
  const auto small = std::make_shared<fetched>(10, true);
  const auto far = std::make_shared<fetched>(5000, false);
  sw::variable_list variables;
  variables.emplace_back("in_host", std::static_pointer_cast<sw::device_elements>(in_host));
  variables.emplace_back("small", std::static_pointer_cast<sw::device_elements>(small));
  variables.emplace_back("far", std::static_pointer_cast<sw::device_elements>(far));

  sw::io::pool helpers(2);
  sw::snapshot_pool pool(0, 1);
  const auto taken = sw::snapshot::capture(pool.acquire(), variables, 1, &helpers);
  for (const auto& [name, from] : {std::pair("in_host", in_host), std::pair("small", small), std::pair("far", far)}) {
    const auto bytes = std::as_bytes(std::span(from->elements));
    const auto* const entry = taken.find(name);
    REQUIRE(entry != nullptr);
    CHECK(std::ranges::equal(entry->bytes, bytes));
  }
  CHECK(in_host->copies == 0);
  CHECK(small->copies == 1);
  CHECK(far->copies == 1);
}

TEST_CASE("a buffer goes back to its pool with its snapshot", "[checkpoint][snapshot]") {
  auto toy = toy_at(1);
  sw::snapshot_pool pool(sw::snapshot_size(toy.list()), 2);
  {
    const auto first = sw::snapshot::capture(pool.acquire(), toy.list(), 1);
    auto second = sw::snapshot::capture(pool.acquire(), toy.list(), 2);
    CHECK(pool.available() == 0);
    CHECK_FALSE(pool.try_acquire().has_value());
    const auto moved = std::move(second);
    CHECK(second.entries().empty());
    CHECK(moved.step() == 2);
  }
  CHECK(pool.available() == 2);
}

TEST_CASE("a snapshot may outlive its pool", "[checkpoint][snapshot]") {
  const auto taken = sw::test::toy_snapshot(5);
  sw::test::toy_variables toy;
  sw::restore(toy.list(), taken);
  CHECK(toy == toy_at(5));
}

TEST_CASE("a buffer grows with the model, and follows when variables change", "[checkpoint][snapshot]") {
  sw::snapshot_pool pool(16, 1);
  for (const std::size_t size : std::vector<std::size_t>{10, 1000, 3, 1000}) {
    std::vector<float> values(size, static_cast<float>(size));
    const auto taken = sw::snapshot::capture(pool.acquire(), sw::variables({{"v", values}}), 0);
    REQUIRE(taken.entries().size() == 1);
    CHECK(taken.entries()[0].shape == sw::tensor_shape{static_cast<std::int64_t>(size)});
    CHECK(std::memcmp(taken.entries()[0].bytes.data(), values.data(), size * sizeof(float)) == 0);
  }
  const float one = 1;
  float two = one;
  const auto renamed = sw::snapshot::capture(pool.acquire(), sw::variables({{"w", two}}), 0);
  CHECK(renamed.entries()[0].name == "w");
  CHECK(renamed.entries()[0].shape.empty());
}

TEST_CASE("variables without a name or of one name make no snapshot, and the buffer is not lost", "[checkpoint][snapshot]") {
  float a = 1;
  float b = 2;
  sw::snapshot_pool pool(1024, 1);
  CHECK_THROWS_AS(sw::snapshot::capture(pool.acquire(), sw::variables({{"a", a}, {"a", b}}), 0), sw::invalid_argument_error);
  CHECK_THROWS_AS(sw::snapshot::capture(pool.acquire(), sw::variables({{"", a}}), 0), sw::invalid_argument_error);
  CHECK(pool.available() == 1);
  CHECK_THROWS_AS(sw::snapshot::capture(sw::snapshot_pool::buffer(), sw::variables({{"a", a}}), 0), sw::failed_precondition_error);
}

TEST_CASE("variables without elements, and no variables at all, can be captured", "[checkpoint][snapshot]") {
  std::vector<float> nothing;
  sw::snapshot_pool pool(0, 1);
  CHECK(sw::snapshot::capture(pool.acquire(), sw::variables({{"n", nothing}}), 0).entries()[0].bytes.empty());
  CHECK(sw::snapshot::capture(pool.acquire(), {}, 3).entries().empty());
}

TEST_CASE("waiting for a buffer ends when one comes back, or when its time has come", "[checkpoint][snapshot]") {
  sw::snapshot_pool pool(64, 1);
  sw::manual_clock clock;
  std::optional<sw::snapshot_pool::buffer> held = pool.acquire();
  SECTION("none in time") {
    std::thread later([&] {
      if (clock.wait_for_pending(1)) { clock.advance(std::chrono::seconds(5)); }
    });
    CHECK_FALSE(pool.acquire_until(clock, clock.now() + std::chrono::seconds(5)).has_value());
    later.join();
  }
  SECTION("one in time") {
    std::thread later([&] {
      if (clock.wait_for_pending(1)) { held.reset(); }
    });
    CHECK(pool.acquire_until(clock, clock.now() + std::chrono::seconds(5)).has_value());
    later.join();
  }
}

TEST_CASE("a waiter is notified once, when a buffer is free", "[checkpoint][snapshot]") {
  sw::snapshot_pool pool(64, 1);
  int woken = 0;
  pool.when_available([&] { ++woken; });
  CHECK(woken == 1);
  {
    const auto held = pool.acquire();
    pool.when_available([&] { ++woken; });
    CHECK(woken == 1);
  }
  CHECK(woken == 2);
  { const auto again = pool.acquire(); }
  CHECK(woken == 2);
}

TEST_CASE("a pool without buffers, or beyond all memory, is refused", "[checkpoint][snapshot]") {
  CHECK_THROWS_AS(sw::snapshot_pool(64, 0), sw::invalid_argument_error);
  CHECK_THROWS_AS(sw::snapshot_pool(std::numeric_limits<std::size_t>::max(), 1), sw::resource_exhausted_error);
  if (!sw::test::is_sanitized) { CHECK_THROWS_AS(sw::snapshot_pool(std::size_t{1} << 62, 1), sw::resource_exhausted_error); }
}

TEST_CASE("a pool on demand has memory only while it is used, or used often", "[checkpoint][snapshot]") {
  const auto clock = std::make_shared<sw::manual_clock>();
  auto pool = sw::snapshot_pool::on_demand(1, clock);
  std::vector<float> w(1000);
  const auto list = sw::variables({{"w", w}});
  const auto capture = [&] { return sw::snapshot::capture(pool.acquire(), list, 1); };
  CHECK(pool.held_bytes() == 0);
  {
    const auto taken = capture();
    CHECK(pool.held_bytes() >= 4000);
    CHECK(pool.held_bytes() == taken.held_bytes());
  }
  CHECK(pool.held_bytes() == 0);
  clock->advance(59s);
  capture();
  CHECK(pool.held_bytes() >= 4000);
  clock->advance(60s);
  capture();
  CHECK(pool.held_bytes() == 0);
  CHECK_THROWS_AS(sw::snapshot_pool::on_demand(0, clock), sw::invalid_argument_error);
}

TEST_CASE("a snapshot that leaves its pool takes its memory along, and its place is free", "[checkpoint][snapshot]") {
  sw::snapshot_pool pool(64, 1);
  std::vector<float> w(1000, 3);
  auto taken = sw::snapshot::capture(pool.acquire(), sw::variables({{"w", w}}), 1);
  taken.leave_pool();
  CHECK(pool.available() == 1);
  CHECK(pool.held_bytes() == 0);
  CHECK(taken.held_bytes() >= 4000);
  w.assign(1000, 4);
  const auto next = sw::snapshot::capture(pool.acquire(), sw::variables({{"w", w}}), 2);
  CHECK(*reinterpret_cast<const float*>(taken.entries()[0].bytes.data()) == 3);
  CHECK(*reinterpret_cast<const float*>(next.entries()[0].bytes.data()) == 4);
}
