// SPDX-License-Identifier: Apache-2.0
#include <stepwell/checkpoint/update_fence.hpp>

#include "support/catch.hpp"

#include <stepwell/base/error.hpp>
#include <stepwell/checkpoint/snapshot.hpp>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <thread>
#include <vector>

namespace sw = stepwell;

namespace {

/// A handle of numbers, as the tensors of LibTorch are.
struct shared_numbers {
  std::shared_ptr<std::vector<float>> numbers;
};

}  // namespace

template<>
struct sw::tensor_adapter<shared_numbers> {
  static constexpr bool is_writable = true;
  static constexpr bool is_borrowed = true;
  static sw::tensor_view view(const shared_numbers& value) { return sw::view_of(*value.numbers); }
  static std::shared_ptr<const void> owner(const shared_numbers& value) { return value.numbers; }
};

namespace {

/// 3 MiB of weights, which are late, and 8 KiB of running means, which are early.
struct two_kinds {
  std::vector<float> weights = std::vector<float>(768 * 1024, 1.0F);
  std::vector<float> means = std::vector<float>(2048, 1.0F);

  sw::variable_list list() { return sw::variables({{"weights", weights}, sw::variable_ref("means", means).early()}); }
  void set(float value) {
    std::ranges::fill(weights, value);
    std::ranges::fill(means, value);
  }
};

sw::snapshot begin(two_kinds& state, sw::update_fence& fence) {
  return sw::snapshot::capture(sw::snapshot_pool(0, 1).acquire(), state.list(), 1, fence);
}

bool holds(const sw::snapshot& taken, const char* name, const std::vector<float>& values) {
  const auto bytes = taken.find(name)->bytes;
  return bytes.size() == values.size() * sizeof(float) && std::memcmp(bytes.data(), values.data(), bytes.size()) == 0;
}

}  // namespace

TEST_CASE("after the fence, variables may change and the snapshot keeps what they were", "[checkpoint][fence]") {
  two_kinds state;
  const two_kinds before;
  sw::update_fence fence;
  CHECK_FALSE(fence.is_pending());
  const auto taken = begin(state, fence);
  CHECK(fence.is_pending());
  std::ranges::fill(state.means, 2.0F);  // early
  fence.wait();
  CHECK_FALSE(fence.is_pending());
  state.set(3);
  taken.complete();
  CHECK(holds(taken, "weights", before.weights));
  CHECK(holds(taken, "means", before.means));
}

TEST_CASE("a snapshot is complete when its entries are read, also before the fence", "[checkpoint][fence]") {
  two_kinds state;
  sw::update_fence fence;
  const auto taken = begin(state, fence);
  CHECK(holds(taken, "weights", state.weights));
}

TEST_CASE("several threads copy a snapshot together", "[checkpoint][fence]") {
  two_kinds state;
  const two_kinds before;
  for (int round = 0; round < 50; ++round) {
    state.set(1);
    sw::update_fence fence;
    const auto taken = begin(state, fence);
    std::jthread writer([&] { taken.complete(); });
    std::jthread reader([&] { static_cast<void>(taken.entries()); });
    fence.wait();
    state.set(2);
    writer.join();
    REQUIRE(holds(taken, "weights", before.weights));
  }
}

TEST_CASE("a snapshot that was destroyed releases its fence and its buffer", "[checkpoint][fence]") {
  two_kinds state;
  sw::update_fence fence;
  sw::snapshot_pool pool(0, 1);
  { const auto dropped = sw::snapshot::capture(pool.acquire(), state.list(), 1, fence); }
  CHECK(pool.available() == 1);
  const auto next = sw::snapshot::capture(pool.acquire(), state.list(), 2);  // the same memory, copied at once
  state.set(2);
  fence.wait();
  CHECK(holds(next, "weights", two_kinds().weights));
}

TEST_CASE("two snapshots of one boundary wait at the same fence", "[checkpoint][fence]") {
  two_kinds state;
  sw::update_fence fence;
  const auto first = begin(state, fence);
  const auto second = begin(state, fence);
  fence.wait();
  state.set(2);
  CHECK(holds(first, "weights", two_kinds().weights));
  CHECK(holds(second, "weights", two_kinds().weights));
}

TEST_CASE("a checked fence names the variable that changed too early", "[checkpoint][fence]") {
  two_kinds state;
  sw::update_fence fence;
  fence.set_checks(true);
  SECTION("the step fails, the snapshot is good") {
    const auto taken = begin(state, fence);
    state.weights.back() = 7;
    CHECK_THROWS_WITH(fence.wait(), ContainsSubstring("\"weights\" changed before update_fence::wait()"));
    CHECK_FALSE(fence.is_pending());
    CHECK(holds(taken, "weights", two_kinds().weights));
  }
  SECTION("an early variable may change at once") {
    const auto taken = begin(state, fence);
    std::ranges::fill(state.means, 5.0F);
    CHECK_NOTHROW(fence.wait());
    CHECK_NOTHROW(taken.complete());
  }
  SECTION("without checks nothing is noticed") {
    fence.set_checks(false);
    const auto taken = begin(state, fence);
    state.weights.back() = 7;
    CHECK_NOTHROW(fence.wait());
    CHECK_NOTHROW(taken.complete());
  }
}

TEST_CASE("a checked fence names the variable that was resized or replaced too early, and reads no memory that is gone",
          "[checkpoint][fence]") {
  two_kinds state;
  sw::update_fence fence;
  fence.set_checks(true);
  const auto taken = begin(state, fence);
  SECTION("resized") {
    fence.list_with([&] { return state.list(); });
    state.weights.resize(2 * state.weights.size());
  }
  SECTION("replaced by equal elements") {
    fence.list_with([&] { return state.list(); });
    state.weights = std::vector<float>(state.weights);
  }
  SECTION("no longer listed") {
    fence.list_with([&] { return sw::variables({{"means", state.means}}); });
    state.weights = {};
  }
  CHECK_THROWS_AS(fence.wait(), sw::failed_precondition_error);
  CHECK_FALSE(fence.is_pending());
  CHECK(holds(taken, "weights", two_kinds().weights));
  state = two_kinds();
  const auto next = begin(state, fence);
  fence.list_with([&] { return state.list(); });
  state.weights.resize(5);
  CHECK_THROWS_WITH(fence.wait(),
                    ContainsSubstring("the variable \"weights\" was resized, replaced or destroyed before update_fence::wait()"));
}

TEST_CASE("early is a property of a reference, which copies and renamed references keep", "[base][variable]") {
  float value = 0;
  const sw::variable_ref plain("v", value);
  CHECK_FALSE(plain.is_early());
  CHECK(plain.early().is_early());
  CHECK(plain.early().renamed("w").is_early());
  CHECK(sw::variables({{"layer", {plain.early()}}}).front().is_early());
  const sw::variable_ref layer("layer", std::vector<sw::variable_ref>{plain});
  CHECK(sw::variables({layer.early()}).front().is_early());
  CHECK_FALSE(sw::variables({layer}).front().is_early());
}

TEST_CASE("a tensor may be replaced before the fence: the copy holds its elements until the fence", "[checkpoint][fence]") {
  for (const bool checks : {false, true}) {
    shared_numbers hidden{std::make_shared<std::vector<float>>(2048, 1.0F)};
    const std::weak_ptr replaced = hidden.numbers;
    sw::update_fence fence;
    fence.set_checks(checks);
    const auto taken = sw::snapshot::capture(sw::snapshot_pool(0, 1).acquire(), sw::variables({{"hidden", hidden}}), 1, fence);
    hidden.numbers = std::make_shared<std::vector<float>>(2048, 2.0F);
    CHECK_FALSE(replaced.expired());
    fence.wait();
    CHECK(replaced.expired());
    CHECK(holds(taken, "hidden", std::vector<float>(2048, 1.0F)));
  }
}
