// SPDX-License-Identifier: Apache-2.0
#include <stepwell/group/group.hpp>
#include <stepwell/group/part_of.hpp>

#include "rig.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

namespace sw = stepwell;
using namespace sw::test;
using namespace std::chrono_literals;

namespace {

/// An engine of two processes that forms one collective.
class engine_without_recovery final : public sw::engine {
public:
  [[nodiscard]] std::string_view name() const noexcept override { return "MPI"; }
  [[nodiscard]] int rank() const noexcept override { return 0; }
  [[nodiscard]] int size() const noexcept override { return 1; }
  [[nodiscard]] bool can_form_again() const noexcept override { return false; }
  [[nodiscard]] sw::formed_collective form(const sw::formation& how) override { return sw::make_single_process_engine()->form(how); }
};

/// Runs steps until the training of the group has ended. Each step has one sum of `T`. Returns the number of steps.
template<class T>
std::int64_t train(member& self, std::int64_t most = 1'000) {
  while (self.step < most) {
    std::array<T, 2> gradients{static_cast<T>(self.group.rank()), T{1}};
    try {
      self.group.sum(gradients);
    } catch (const sw::out_of_range_error&) { return self.step; }
    CHECK(gradients[1] == static_cast<T>(self.group.size()));
    ++self.step;
  }
  return self.step;
}

/// Trains until a process is lost. Returns the message of the error, or an empty text without a loss.
std::string train_until_loss(member& self) {
  try {
    train<float>(self);
  } catch (const sw::unavailable_error& lost) { return lost.what(); }
  return {};
}

}  // namespace

// ---- options

TEST_CASE("options of a group outside of their ranges are errors", "[group]") {
  const auto made = [](const sw::group_options& options) { return sw::group(sw::make_single_process_engine(), options); };
  CHECK_THROWS_AS(made({.min_size = -1}), sw::invalid_argument_error);
  CHECK_THROWS_WITH(made({.min_size = 2}), ContainsSubstring("min_size is 2"));
  CHECK_THROWS_WITH(made({.patience_secs = -1}), ContainsSubstring("patience_secs"));
  CHECK_THROWS_AS(made({.patience_secs = std::nan("")}), sw::invalid_argument_error);
  CHECK_THROWS_WITH(made({.parts = -4}), ContainsSubstring("parts is -4"));
}

TEST_CASE("a group without min_size needs all processes, and has as many parts as processes", "[group]") {
  group_rig rig(3);
  rig.start(0, [&](simulated_node& self) {
    const member one(rig, self);
    CHECK(one.group.options().min_size == 3);
    CHECK(one.group.parts() == 3);
    CHECK(one.group.generation() == 0);
    CHECK(one.group.is_chief());
    CHECK(one.group.engine_name() == "the simulated network");
    CHECK(member(rig, self, {.parts = 8}).group.parts() == 8);
  });
  rig.run_well();
}

// ---- one process

TEST_CASE("a process without a launcher is a group of one, whose sums change nothing", "[group]") {
  sw::group group(sw::make_single_process_engine());
  CHECK(group.rank() == 0);
  CHECK(group.size() == 1);
  group.form({.time = sw::system_clock(), .stop = {}}, {});
  CHECK(group.generation() == 1);
  std::vector<float> values{1, 2};
  group.sum(values);
  group.broadcast(values);
  std::vector<std::byte> bytes(3);
  group.share(bytes);
  group.compare("model", "a");
  group.leave(1);
  group.sum(values);
  CHECK(values == std::vector<float>{1, 2});
  CHECK(bytes.size() == 3);
  group.form({.time = sw::system_clock(), .stop = {}}, {});
  CHECK(group.generation() == 2);
}

TEST_CASE("a group that a session uses is refused to another session until the first one gives it back", "[group]") {
  sw::group group(sw::make_single_process_engine());
  const int first = 1;
  const int second = 2;
  const auto form = [&](const int& owner) { group.form({.time = sw::system_clock(), .stop = {}, .owner = &owner}, {}); };
  form(first);
  form(first);  // a recovery
  CHECK_THROWS_WITH(form(second), ContainsSubstring("another session uses this group"));
  CHECK(group.is_formed());
  group.close();
  CHECK_NOTHROW(form(second));
}

TEST_CASE("a group whose engine cannot form again after a loss says so, and forms again after a clean end", "[group]") {
  sw::group group(std::make_unique<engine_without_recovery>());
  group.form({.time = sw::system_clock(), .stop = {}}, {});
  group.close();
  group.form({.time = sw::system_clock(), .stop = {}}, {});
  CHECK(group.generation() == 2);
  group.abandon("the disk is full");
  CHECK_THROWS_AS(group.form({.time = sw::system_clock(), .stop = {}}, {}), sw::failed_precondition_error);
  CHECK_THROWS_WITH(group.form({.time = sw::system_clock(), .stop = {}}, {}), ContainsSubstring("MPI cannot form the group again"));
}

// ---- sums of fixed parts

TEST_CASE("sums of parts for which there is no memory are a resource_exhausted_error", "[group]") {
  const auto group = std::make_shared<sw::group>(sw::make_single_process_engine(), sw::group_options{.parts = 4});
  for (const auto size : {std::size_t{1} << 60, std::size_t{1} << 62, std::numeric_limits<std::size_t>::max()}) {
    CHECK_THROWS_AS(sw::part_sums<double>(group, size), sw::resource_exhausted_error);
  }
}

TEST_CASE("the sign of a sum of parts that are zero does not depend on the number of processes", "[group]") {
  group_rig rig(GENERATE(1, 2));
  rig.start_all([&](simulated_node& self) {
    member one(rig, self, {.parts = 2});
    one.form();
    sw::part_sums<double> sums(std::shared_ptr<sw::group>(std::shared_ptr<void>(), &one.group), 1);
    const auto parts_of_process = 2 / one.group.size();
    for (int i = 0; i < parts_of_process; ++i) { sums.part(one.group.rank() * parts_of_process + i)[0] = -0.0; }
    const auto total = sums.sum()[0];
    CHECK(total == 0);
    CHECK_FALSE(std::signbit(total));
    one.group.leave(1);
  });
  rig.run_well();
}

// ---- operations

TEST_CASE("all processes get the sum of numbers, ranges and tensors", "[group]") {
  group_rig rig(3);
  rig.start_all([&](simulated_node& self) {
    member one(rig, self);
    one.form();
    float number = 0.5F;
    std::vector<double> range{1, static_cast<double>(self.rank)};
    std::array<std::int64_t, 1> integers{self.rank};
    one.group.sum(number);
    one.group.sum(range);
    one.group.sum(std::span(integers));
    CHECK(number == 1.5F);
    CHECK(range == std::vector<double>{3, 3});
    CHECK(integers[0] == 3);
  });
  rig.run_well();
}

TEST_CASE("a broadcast copies the elements of rank 0", "[group]") {
  group_rig rig(3);
  rig.start_all([&](simulated_node& self) {
    member one(rig, self);
    one.form();
    std::vector<int> values{self.rank, self.rank + 10};
    one.group.broadcast(values);
    CHECK(values == std::vector<int>{0, 10});
  });
  rig.run_well();
}

TEST_CASE("the state of rank 0 is shared with any size", "[group]") {
  group_rig rig(2);
  rig.start_all([&](simulated_node& self) {
    member one(rig, self);
    one.form();
    for (const std::size_t size : {0U, 1U, 1000U}) {
      std::vector<std::byte> bytes(self.rank == 0 ? size : 7, static_cast<std::byte>(self.rank));
      one.group.share(bytes);
      CHECK(bytes == std::vector<std::byte>(size, std::byte{0}));
    }
  });
  rig.run_well();
}

TEST_CASE("a group that is not formed rejects sums and broadcasts", "[group]") {
  group_rig rig(2);
  rig.start_all([&](simulated_node& self) {
    member one(rig, self);
    float value = 1;
    CHECK_THROWS_AS(one.group.sum(value), sw::failed_precondition_error);
    CHECK_THROWS_WITH(one.group.broadcast(value), ContainsSubstring("cannot broadcast: the group is not formed"));
    one.form();
    CHECK(one.group.is_formed());
    one.group.sum(value);
    one.group.close();
    CHECK_FALSE(one.group.is_formed());
    CHECK_THROWS_AS(one.group.sum(value), sw::failed_precondition_error);
    one.group.leave(1);  // has no effect
  });
  rig.run_well();
}

TEST_CASE("the ranks whose text differs from that of rank 0 are named", "[group]") {
  group_rig rig(4);
  std::vector<std::string> messages(4);
  rig.start_all([&](simulated_node& self) {
    member one(rig, self);
    one.form();
    one.group.compare("data", "equal");
    try {
      one.group.compare("model", self.rank % 2 == 0 ? "two layers" : "three layers");
    } catch (const sw::failed_precondition_error& failure) { messages[static_cast<std::size_t>(self.rank)] = failure.what(); }
  });
  rig.run_well();
  for (const auto& message : messages) {
    CHECK_THAT(message, ContainsSubstring("the model of rank 0 and of rank 1, 3 of the group differ"));
  }
  CHECK_THAT(messages[3], ContainsSubstring("this is rank 3, with: three layers"));
}

// ---- the end of the training

TEMPLATE_TEST_CASE("a process that leaves ends the training of all at its step", "[group]", float, double, std::int64_t) {
  group_rig rig(3);
  rig.start_all([&](simulated_node& self) {
    member one(rig, self);
    one.form();
    if (self.rank == 1) {
      CHECK(train<TestType>(one, 5) == 5);
      one.group.leave(42);
      one.group.leave(43);  // has no effect
      CHECK(one.ending == std::pair<int, std::int64_t>(-1, 0));
    } else {
      CHECK(train<TestType>(one) == 5);
      CHECK(one.ending == std::pair<int, std::int64_t>(1, 42));
      TestType again = 1;
      CHECK_THROWS_AS(one.group.sum(again), sw::out_of_range_error);
      one.group.leave(1);  // has no effect
    }
  });
  rig.run_well();
}

TEST_CASE("a process that leaves before its first step ends the training of all", "[group]") {
  group_rig rig(3);
  rig.start_all([&](simulated_node& self) {
    member one(rig, self);
    one.form();
    if (self.rank == 2) { return one.group.leave(7); }
    CHECK(train<float>(one) == 0);
    CHECK(one.ending == std::pair<int, std::int64_t>(2, 7));
  });
  rig.run_well();
}

TEST_CASE("a first sum without elements carries the end of the training, too", "[group]") {
  group_rig rig(2);
  rig.start_all([&](simulated_node& self) {
    member one(rig, self);
    one.form();
    std::vector<float> none;
    for (; one.step < 3; ++one.step) { one.group.sum(none); }
    if (self.rank == 1) { return one.group.leave(7); }
    CHECK_THROWS_AS(one.group.sum(none), sw::out_of_range_error);
    CHECK(one.ending == std::pair<int, std::int64_t>(1, 7));
  });
  rig.run_well();
}

TEST_CASE("processes that leave at the same step do not wait for each other", "[group]") {
  group_rig rig(3);
  rig.start_all([&](simulated_node& self) {
    member one(rig, self);
    one.form();
    if (self.rank > 0) {
      CHECK(train<float>(one, 2) == 2);
      return one.group.leave(10 + self.rank);
    }
    CHECK(train<float>(one) == 2);
    CHECK(one.ending == std::pair<int, std::int64_t>(1, 11));  // the first rank that has left
  });
  rig.run_well();
}

TEST_CASE("a group whose training has ended can be formed for another one", "[group]") {
  group_rig rig(2);
  rig.start_all([&](simulated_node& self) {
    member one(rig, self);
    for (const std::int64_t last : {2, 4}) {
      one.form();
      CHECK(train<float>(one, last) == last);
      one.group.leave(1);
      one.group.close();
    }
    CHECK(one.group.generation() == 2);
  });
  rig.run_well();
}

TEST_CASE("a NaN of the model does not end the training", "[group]") {
  group_rig rig(2);
  rig.start_all([&](simulated_node& self) {
    member one(rig, self);
    one.form();
    for (; one.step < 3; ++one.step) {
      std::array<float, 2> values{self.rank == 1 ? std::numeric_limits<float>::quiet_NaN() : 1, 1};
      one.group.sum(values);
      CHECK(std::isnan(values[0]));
      CHECK(values[1] == 2);
    }
    CHECK(one.ending.first == -1);
  });
  rig.run_well();
}

TEST_CASE("the vote of a step needs no operation of its own", "[group]") {
  group_rig rig(2);
  auto before = std::numeric_limits<std::size_t>::max();
  std::size_t after = 0;
  rig.start_all([&](simulated_node& self) {
    member one(rig, self);
    one.form();
    CHECK(train<float>(one, 1) == 1);                                      // the first step also compares the elements
    before = std::min(before, rig.network.operations_of(self.formation));  // the other process may have begun the next operation
    CHECK(train<float>(one, 11) == 11);
    after = rig.network.operations_of(self.formation);
    rig.world.sleep_for(1ms);
  });
  rig.run_well();
  CHECK(after - before == 10);
}

TEST_CASE("sums between two steps do not take part in the vote", "[group]") {
  group_rig rig(2);
  rig.start_all([&](simulated_node& self) {
    member one(rig, self);
    one.form();
    for (const std::int64_t last : {1, 2, 3}) {
      CHECK(train<float>(one, last) == last);
      one.is_stepping = false;
      std::vector<double> values(static_cast<std::size_t>(last), 1);
      one.group.sum(values);
      CHECK(values.back() == 2);
      one.is_stepping = true;
    }
  });
  rig.run_well();
}

// ---- wrong use

TEST_CASE("different elements in the first sum of a step are an error that names the rank", "[group]") {
  group_rig rig(2);
  rig.start_all([&](simulated_node& self) {
    member one(rig, self);
    one.form();
    std::vector<float> values(self.rank == 0 ? 3 : 4);
    CHECK_THROWS_AS(one.group.sum(values), sw::invalid_argument_error);
  });
  rig.run_well();
}

TEST_CASE("a first sum with other elements than in an earlier step is an error", "[group]") {
  group_rig rig(2);
  rig.start_all([&](simulated_node& self) {
    member one(rig, self);
    one.form();
    std::vector<float> values(3);
    std::vector<double> others(3);
    one.group.sum(values);
    one.group.sum(others);  // only the first sum of a step is limited
    ++one.step;
    CHECK_THROWS_AS(one.group.sum(others), sw::invalid_argument_error);
    CHECK_THROWS_WITH(one.group.sum(others),
                      ContainsSubstring("24 bytes of type float64") && ContainsSubstring("12 bytes of type float32"));
  });
  rig.run_well();
}

TEST_CASE("a first sum needs floating-point numbers or int64", "[group]") {
  group_rig rig(2);
  rig.start_all([&](simulated_node& self) {
    member one(rig, self);
    one.form();
    std::vector<std::int32_t> values(3);
    CHECK_THROWS_AS(one.group.sum(values), sw::invalid_argument_error);
    rig.world.sleep_for(1ms);
  });
  rig.run_well();
}

TEST_CASE("a type that the engine cannot add is an error", "[group]") {
  group_rig rig(2);
  rig.start_all([&](simulated_node& self) {
    member one(rig, self);
    one.form();
    float first = 1;
    one.group.sum(first);
    std::vector<std::int32_t> values(3);
    CHECK_THROWS_AS(one.group.sum(values), sw::error);
  });
  rig.run_well();
}

// ---- losses

TEST_CASE("survivors of a loss get an error that names the rank, and form again with its replacement", "[group]") {
  group_rig rig(3);
  const auto main = [&](simulated_node& self) {
    member one(rig, self);
    one.form();
    const bool is_first = one.group.generation() == 1;
    if (is_first) {
      const auto loss = train_until_loss(one);
      CHECK_THAT(loss, ContainsSubstring("rank 1 is lost"));
      CHECK_FALSE(one.group.is_formed());
      one.step = 0;
      one.form();
    }
    CHECK(one.group.generation() == 2);
    CHECK(one.group.size() == 3);
    CHECK(train<float>(one, 5) == 5);
    rig.world.sleep_for(1ms);
  };
  rig.start_all(main);
  rig.world.at_point(200, [&] {
    rig.network.kill(*rig.network.newest(1), false);
    rig.start(1, main);
  });
  rig.run_well();
}

TEST_CASE("after a loss without a replacement the ranks have no gap", "[group]") {
  group_rig rig(3);
  rig.start_all([&](simulated_node& self) {
    member one(rig, self, {.min_size = 2, .patience_secs = 1});
    one.form();
    CHECK(one.group.rank() == self.rank);
    const bool is_lost = !train_until_loss(one).empty();
    CHECK(is_lost);
    one.form();
    CHECK(one.group.size() == 2);
    CHECK(one.group.parts() == 2);
    CHECK(one.group.rank() == (self.rank == 0 ? 0 : 1));
    CHECK(one.group.is_chief() == (self.rank == 0));
    one.step = 0;
    CHECK(train<float>(one, 5) == 5);
  });
  rig.world.at_point(200, [&] { rig.network.kill(*rig.network.newest(1), false); });
  rig.run_well();
}

TEST_CASE("a group that has shrunk to one process trains alone", "[group]") {
  group_rig rig(2);
  rig.start_all([&](simulated_node& self) {
    member one(rig, self, {.min_size = 1, .patience_secs = 1});
    one.form();
    const bool is_lost = !train_until_loss(one).empty();
    CHECK(is_lost);
    one.form();
    CHECK(one.group.size() == 1);
    one.step = 0;
    CHECK(train<float>(one, 5) == 5);
    one.group.leave(1);
  });
  rig.world.at_point(200, [&] { rig.network.kill(*rig.network.newest(1), false); });
  rig.run_well();
}

TEST_CASE("a frozen process is an error of the others within the limit of the engine", "[group]") {
  group_rig rig(2);
  rig.start_all([&](simulated_node& self) {
    member one(rig, self);
    one.form();
    const bool is_lost = !train_until_loss(one).empty();
    CHECK(is_lost);
    if (self.rank == 0) { CHECK(rig.seconds() < 1); }
  });
  rig.world.at_point(200, [&] {
    auto& frozen = *rig.network.newest(1);
    simulation::freeze(*frozen.process);
    rig.world.after(5s, [&frozen] { simulation::resume(*frozen.process); });
  });
  rig.run_well();
}

TEST_CASE("a process that abandons the group tells the others why", "[group]") {
  group_rig rig(2);
  rig.start_all([&](simulated_node& self) {
    member one(rig, self);
    one.form();
    CHECK(train<float>(one, 2) == 2);
    if (self.rank == 1) {
      rig.world.sleep_for(10ms);  // rank 0 has the result of the last sum
      one.group.abandon("the disk is full");
      one.group.abandon("again");  // has no effect
      CHECK_FALSE(one.group.is_formed());
    } else {
      CHECK_THROWS_WITH(train<float>(one), ContainsSubstring("the disk is full"));
    }
  });
  rig.run_well();
}

TEST_CASE("forming a group passes its limit and its stop token on", "[group]") {
  group_rig rig(2);
  SECTION("limit") {
    const auto& chief = rig.start(0, [&](simulated_node& self) { member(rig, self).form(3s); });
    rig.run();
    CHECK(group_rig::failed_with<sw::deadline_exceeded_error>(chief));
    CHECK(rig.seconds() == Approx(3).margin(0.01));
  }
  SECTION("stop") {
    const auto& chief = rig.start(0, [&](simulated_node& self) { member(rig, self).form(std::chrono::hours(1)); });
    rig.world.after(100s, [&] { simulation::request_stop(*chief.process); });
    rig.run();
    CHECK(group_rig::failed_with<sw::cancelled_error>(chief));
  }
}
