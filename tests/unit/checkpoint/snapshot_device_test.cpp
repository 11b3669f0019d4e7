// SPDX-License-Identifier: Apache-2.0
//
// Snapshots of elements that a device copies while the host computes. The device of these tests makes a copy when the test says so, in any order.
#include "support/catch.hpp"

#include <stepwell/base/error.hpp>
#include <stepwell/base/tensor.hpp>
#include <stepwell/base/variable.hpp>
#include <stepwell/checkpoint/snapshot.hpp>
#include <stepwell/checkpoint/update_fence.hpp>

#include <algorithm>
#include <bit>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace sw = stepwell;

namespace {

/// Floats on a device. `set` is work of the device: it comes after the copies that were told to hold it back, and before all others.
class late_floats final : public sw::device_elements {
public:
  explicit late_floats(std::size_t count, float value = 1) : elements_(count, value) {}

  [[nodiscard]] sw::tensor_view description() const override { return {sw::dtype::float32, {std::ssize(elements_)}, {}}; }
  void copy_to(std::span<std::byte>) const override { FAIL("the host waits for a copy that the device can begin"); }
  void copy_from(std::span<const std::byte> from) override { std::memcpy(elements_.data(), from.data(), from.size()); }
  [[nodiscard]] std::shared_ptr<sw::device_copy> start_copy_to(std::span<std::byte> to) const override {
    copies_.push_back(std::make_shared<copy>(*this, to));
    return copies_.back();
  }
  [[nodiscard]] std::shared_ptr<std::byte> host_memory(std::size_t size) const override {
    if (!has_memory) { return nullptr; }
    ++allocations;
    allocated = size;
    memory = {static_cast<std::byte*>(std::aligned_alloc(4096, (size + 4095) / 4096 * 4096)), &std::free};
    return memory;
  }

  void set(float value) {
    for (const auto& one : copies_) {
      if (one->is_held_back) { one->read(); }
    }
    std::ranges::fill(elements_, value);
  }
  /// Ends the newest copy. `fails`: with an error.
  void finish(bool fails = false) const { copies_.back()->finish(fails); }
  /// Blocks until a thread waits for the newest copy.
  void wait_for_waiter() const { copies_.back()->wait_for_waiter(); }
  [[nodiscard]] bool is_held_back() const { return copies_.back()->is_held_back; }
  [[nodiscard]] std::size_t copies() const { return copies_.size(); }

  bool has_memory = false;
  bool cannot_hold_back = false;
  mutable int allocations = 0;
  mutable std::size_t allocated = 0;
  mutable std::shared_ptr<std::byte> memory;

private:
  class copy final : public sw::device_copy {
  public:
    copy(const late_floats& from, std::span<std::byte> to) : from_(&from), to_(to) {}

    void hold_back_updates() override {
      if (from_->cannot_hold_back) { throw sw::internal_error("the device has no events"); }
      is_held_back = true;
    }
    void wait() override {
      std::unique_lock lock(mutex_);
      ++waiters_;
      changed_.notify_all();
      changed_.wait(lock, [this] { return is_done_; });
      if (fails_) { throw sw::internal_error("the device is lost"); }
    }
    void read() {
      if (read_.empty()) { read_ = from_->elements_; }
    }
    void finish(bool fails) {
      read();
      const std::lock_guard lock(mutex_);
      if (!fails) { std::memcpy(to_.data(), read_.data(), to_.size()); }
      fails_ = fails;
      is_done_ = true;
      changed_.notify_all();
    }
    void wait_for_waiter() {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return waiters_ > 0; });
    }

    bool is_held_back = false;

  private:
    const late_floats* from_;
    std::span<std::byte> to_;
    std::vector<float> read_;
    std::mutex mutex_;
    std::condition_variable changed_;
    int waiters_ = 0;
    bool is_done_ = false;
    bool fails_ = false;
  };

  std::vector<float> elements_;
  mutable std::vector<std::shared_ptr<copy>> copies_;
};

constexpr std::size_t large = 2048;  // floats: more than 4 KiB

std::shared_ptr<late_floats> floats(std::size_t count = large) { return std::make_shared<late_floats>(count); }
sw::variable_ref listed(std::string name, const std::shared_ptr<late_floats>& one) {
  return {std::move(name), std::static_pointer_cast<sw::device_elements>(one)};
}
sw::snapshot begin(const sw::variable_list& variables, sw::update_fence& fence) {
  return sw::snapshot::capture(sw::snapshot_pool(0, 1).acquire(), variables, 1, fence);
}
bool holds(const sw::snapshot& taken, const char* name, float value) {
  const auto bytes = taken.find(name)->bytes;
  const std::vector<float> expected(bytes.size() / sizeof(float), value);
  return !expected.empty() && std::memcmp(bytes.data(), expected.data(), bytes.size()) == 0;
}

}  // namespace

TEST_CASE("the fence does not wait for a device, and the reader of the snapshot does", "[checkpoint][device]") {
  const auto first = floats();
  const auto second = floats();
  std::vector<float> on_host(large, 1);
  sw::update_fence fence;
  const auto taken = begin({listed("first", first), listed("second", second), {"host", on_host}}, fence);
  CHECK_FALSE(first->is_held_back());
  fence.wait();  // no copy has been made
  CHECK_FALSE(fence.is_pending());
  CHECK(first->is_held_back());
  first->set(2);
  second->set(2);
  std::ranges::fill(on_host, 2.0F);
  std::jthread writer([&] { taken.complete(); });
  first->wait_for_waiter();
  second->finish();  // the last one is first
  first->finish();
  writer.join();
  CHECK(holds(taken, "first", 1));
  CHECK(holds(taken, "second", 1));
  CHECK(holds(taken, "host", 1));
}

TEST_CASE("a device that changes elements before the fence gives a mixed snapshot, so the fence is needed", "[checkpoint][device]") {
  const auto weights = floats();
  sw::update_fence fence;
  const auto taken = begin({listed("weights", weights)}, fence);
  weights->set(2);
  fence.wait();
  weights->finish();
  CHECK(holds(taken, "weights", 2));
}

TEST_CASE("early and small variables of a device may change before the fence, and are copied first", "[checkpoint][device]") {
  const auto late = floats();
  const auto early = floats();
  const auto small = floats(4);
  sw::update_fence fence;
  const auto taken = begin({listed("late", late), listed("early", early).early(), listed("small", small)}, fence);
  CHECK(early->is_held_back());
  CHECK(small->is_held_back());
  CHECK_FALSE(late->is_held_back());
  early->set(2);
  small->set(2);
  fence.wait();
  late->set(2);
  for (const auto& one : {late, small, early}) { one->finish(); }
  for (const auto* name : {"late", "early", "small"}) { CHECK(holds(taken, name, 1)); }
}

TEST_CASE("without a fence the elements on a device may change at once, and no thread waits before the snapshot is read",
          "[checkpoint][device]") {
  const auto weights = floats();
  const auto taken = sw::snapshot::capture(sw::snapshot_pool(0, 1).acquire(), {listed("weights", weights)}, 1);
  CHECK(weights->is_held_back());
  weights->set(2);
  std::jthread reader([&] { CHECK(holds(taken, "weights", 1)); });
  weights->wait_for_waiter();
  weights->finish();
}

TEST_CASE("a buffer goes back to its pool when the device no longer writes to it", "[checkpoint][device]") {
  const auto weights = floats();
  sw::snapshot_pool pool(0, 1);
  sw::update_fence fence;
  {
    auto dropped = sw::snapshot::capture(pool.acquire(), {listed("weights", weights)}, 1, fence);
    std::jthread dropping([taken = std::move(dropped)] {});
    weights->wait_for_waiter();
    CHECK(pool.available() == 0);
    weights->finish();
  }
  CHECK(pool.available() == 1);
  fence.wait();
  CHECK(weights->copies() == 1);
}

TEST_CASE("a copy that the device fails to make is an error of the reader that names the variable", "[checkpoint][device]") {
  const auto good = floats();
  const auto lost = floats();
  sw::update_fence fence;
  const auto taken = begin({listed("lost", lost), listed("good", good)}, fence);
  fence.wait();
  lost->finish(true);
  good->finish();
  const auto message = ContainsSubstring("variable \"lost\": the device is lost");
  CHECK_THROWS_WITH(taken.complete(), message);
  CHECK_THROWS_WITH(taken.entries(), message);
}

TEST_CASE("if a device cannot delay updates, the fence waits for its copies and fails", "[checkpoint][device]") {
  const auto weights = floats();
  weights->cannot_hold_back = true;
  sw::update_fence fence;
  const auto taken = begin({listed("weights", weights)}, fence);
  std::jthread device([&] {
    weights->wait_for_waiter();
    weights->finish();
  });
  CHECK_THROWS_WITH(fence.wait(), ContainsSubstring("variable \"weights\": the device has no events"));
  CHECK_FALSE(fence.is_pending());
  CHECK(holds(taken, "weights", 1));
}

TEST_CASE("a snapshot of elements on a device is in host memory of the device, if it has such memory", "[checkpoint][device]") {
  const auto plain = floats();
  const auto pinned = floats();
  pinned->has_memory = true;
  std::vector<float> on_host(large, 1);
  sw::snapshot_pool pool(64 * 1024, 1);  // made before the device is known
  for (int round = 0; round < 3; ++round) {
    const auto taken = sw::snapshot::capture(pool.acquire(), {{"host", on_host}, listed("plain", plain), listed("pinned", pinned)}, round);
    plain->finish();
    pinned->finish();
    const auto* const first = pinned->memory.get();
    CHECK(taken.entries().front().bytes.data() == first);
    for (const auto* name : {"host", "plain", "pinned"}) { CHECK(holds(taken, name, 1)); }
    CHECK(pool.held_bytes() == taken.held_bytes());
  }
  CHECK(pinned->allocations == 1);
  CHECK(pool.held_bytes() == pinned->allocated);
  CHECK(std::has_single_bit(pinned->allocated + 4096));  // such allocators round up to powers of two; this is counted
  pinned->memory.reset();
  CHECK(pool.held_bytes() < 64 * 1024);
}
