// SPDX-License-Identifier: Apache-2.0
#include "rig.hpp"

#include <unistd.h>
#include <stepwell/group/detail/group_store.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace sw = stepwell;
using namespace sw::test;
using namespace std::chrono_literals;

namespace {

struct demands {
  sw::clock::duration limit = 10s;
  int min_size = 0;
  sw::clock::duration patience = 1s;
  std::int64_t last_generation = 0;
  bool is_recovery = false;
  std::function<void()> check = {};
};

/// Rank 0 and its store live for a moment longer, so that the others can read the result.
sw::agreed_formation agree(group_rig& rig, simulated_node& self, const demands& how = {}) {
  const auto store = rig.network.connect_store(self);
  auto made = sw::agree_on_formation(*store, {self.rank, rig.network.size(), self.identity},
                                     {.time = *rig.world.time(),
                                      .stop = self.process->stop_token(),
                                      .until = rig.world.now() + how.limit,
                                      .min_size = how.min_size == 0 ? rig.network.size() : how.min_size,
                                      .patience = how.patience,
                                      .last_generation = how.last_generation,
                                      .is_recovery = how.is_recovery,
                                      .check = how.check});
  if (self.rank == 0) { rig.world.sleep_for(100ms); }
  return made;
}

/// A store that calls a function before its next `compare_set`, as if the process was stopped there for a while.
class interrupted_store final : public sw::group_store {
public:
  void set(const std::string& key, const std::string& value) override { values[key] = value; }
  [[nodiscard]] std::optional<std::string> get(const std::string& key) override {
    const auto found = values.find(key);
    return found == values.end() ? std::nullopt : std::optional(found->second);
  }
  std::optional<std::string> compare_set(const std::string& key, const std::optional<std::string>& expected,
                                         const std::string& desired) override {
    if (const auto act = std::exchange(meanwhile, nullptr)) { act(); }
    if (get(key) == expected) { values[key] = desired; }
    return get(key);
  }

  std::map<std::string, std::string> values;
  std::function<void()> meanwhile = nullptr;
};

}  // namespace

TEST_CASE("a formation that is not the newest one sets no value, and reads those of no other one", "[group][group_store]") {
  interrupted_store store;
  sw::formation_values earlier(store, "1 chief");
  store.set("round", "1 chief");
  CHECK(earlier.set("join/1", "a\nb"));
  CHECK(earlier.get("join/1") == "a\nb");
  CHECK(earlier.set("join/1", "c"));  // by a replacement of that process
  store.set("round", "2 chief");
  CHECK_FALSE(earlier.is_newest());
  CHECK_FALSE(earlier.set("join/1", "d"));
  CHECK(earlier.get("join/1") == "c");
  sw::formation_values newest(store, "2 chief");
  CHECK(newest.get("join/1") == std::nullopt);
  CHECK(newest.set("join/1", "e"));
  CHECK(newest.get("join/1") == "e");
  CHECK(earlier.get("join/1") == std::nullopt);
}

TEST_CASE("a process that is stopped while it sets a value replaces no value of a newer formation", "[group][group_store]") {
  interrupted_store store;
  store.set("round", "1 chief");
  sw::formation_values former(store, "1 chief");
  sw::formation_values newest(store, "2 chief");
  if (GENERATE(false, true)) { CHECK(former.set("join/1", "first")); }
  SECTION("which is there when it continues") {
    store.meanwhile = [&] {
      store.set("round", "2 chief");
      CHECK(newest.set("join/1", "new"));
    };
    CHECK_FALSE(former.set("join/1", "late"));
  }
  SECTION("which comes later") {
    store.meanwhile = [&] { store.set("round", "2 chief"); };
    CHECK(former.set("join/1", "late"));
    CHECK(newest.get("join/1") == std::nullopt);
    CHECK(newest.set("join/1", "new"));
  }
  SECTION("which is being set when the late value arrives") {
    store.set("round", "2 chief");
    store.meanwhile = [&] { store.set("join/1", "1 chief\nlate"); };
    CHECK(newest.set("join/1", "new"));
  }
  CHECK(newest.get("join/1") == "new");
}

TEST_CASE("an announcement of an end that arrives after its rank takes part again has no effect", "[group][group_store]") {
  group_rig rig(2);
  rig.start_all([&](simulated_node& self) { agree(rig, self); });
  rig.run_well();
  const auto joined = rig.network.nodes()[0]->store.at("ended/1");
  CHECK(joined.starts_with("0 "));
  interrupted_store store;
  store.meanwhile = [&] { store.set("ended/1", joined); };
  sw::announce_end(store, 1, 7);
  CHECK(store.get("ended/1") == joined);
  sw::announce_end(store, 1, 7);
  CHECK(store.get("ended/1") == "7");
}

TEST_CASE("of two processes of rank 0 that use one store, the one that begins its first formation last goes on", "[group][group_store]") {
  interrupted_store store;
  const auto clock = std::make_shared<sw::manual_clock>();
  std::function<void()> check;
  const auto form = [&](std::int64_t last_generation) {
    return sw::agree_on_formation(store, {0, 2, "mine"},
                                  {.time = *clock,
                                   .stop = {},
                                   .until = clock->now() + 10s,
                                   .min_size = 1,
                                   .patience = 0s,
                                   .last_generation = last_generation,
                                   .is_recovery = true,
                                   .check = check});
  };
  const auto check_replaced = [&](std::int64_t last_generation) {
    CHECK_THROWS_AS(form(last_generation), sw::failed_precondition_error);
    CHECK_THROWS_WITH(form(last_generation),
                      ContainsSubstring("rank 0 of the group is now the process other; this process (mine) was replaced and must end"));
    CHECK(store.get("round") == "7 other");
  };
  SECTION("the other one began before") {
    store.set("round", "7 other");
    store.set("join/1", "8 mine\n1 worker");
    CHECK(form(0).name == "8 mine");
  }
  SECTION("the other one begins while this one does") {
    store.meanwhile = [&] { store.set("round", "7 other"); };
    store.set("join/1", "8 mine\n1 worker");
    CHECK(form(0).name == "8 mine");
    CHECK(store.get("round") == "8 mine");
  }
  SECTION("the other one begins while this one waits") {
    check = [&, calls = 0]() mutable {
      if (++calls == 2) { store.set("round", "7 other"); }
    };
    store.set("join/1", "1 mine\n1 worker");
    CHECK_THROWS_AS(form(3), sw::failed_precondition_error);
    check_replaced(3);
  }
  SECTION("the other one began after a formation of this one") {
    store.set("round", "7 other");
    check_replaced(3);
  }
  SECTION("the directory of this one belongs to the other one") {
    store.set("round", "7 other");
    check = [] { throw sw::failed_precondition_error("a newer writer"); };
    CHECK_THROWS_WITH(form(0), ContainsSubstring("a newer writer"));
    CHECK(store.get("round") == "7 other");
  }
}

TEST_CASE("the store does not grow with the number of formations", "[group][group_store]") {
  group_rig rig(3);
  std::vector<std::size_t> sizes;
  rig.start_all([&](simulated_node& self) {
    for (std::int64_t generation = 0; generation < 20; ++generation) {
      CHECK(agree(rig, self, {.last_generation = generation}).generation == generation + 1);
      if (self.rank == 0) { sizes.push_back(self.store.size()); }
    }
  });
  rig.run_well();
  REQUIRE(sizes.size() == 20);
  CHECK(sizes.back() == sizes.front());
}

TEST_CASE("all processes agree on the members, the name and the generation of a formation", "[group][group_store]") {
  group_rig rig(3);
  std::vector<sw::agreed_formation> made(3);
  rig.start_all([&](simulated_node& self) { made[static_cast<std::size_t>(self.rank)] = agree(rig, self); });
  rig.run_well();
  for (std::size_t rank = 0; rank < 3; ++rank) {
    CHECK(made[rank].generation == 1);
    CHECK(made[rank].name == made[0].name);
    CHECK(made[rank].place == static_cast<int>(rank));
    REQUIRE(made[rank].members.size() == 3);
    for (std::size_t other = 0; other < 3; ++other) {
      CHECK(made[rank].members[other].rank == static_cast<int>(other));
      CHECK(made[rank].members[other].identity == rig.network.nodes()[other]->identity);
    }
  }
}

TEST_CASE("the next formation has another name and a higher generation than those of all members", "[group][group_store]") {
  group_rig rig(2);
  std::vector<sw::agreed_formation> made;
  rig.start(0, [&](simulated_node& self) {
    made.push_back(agree(rig, self));
    made.push_back(agree(rig, self, {.last_generation = 1}));
  });
  rig.start(1, [&](simulated_node& self) {
    CHECK(agree(rig, self).generation == 1);
    CHECK(agree(rig, self, {.last_generation = 7}).generation == 8);
  });
  rig.run_well();
  REQUIRE(made.size() == 2);
  CHECK(made[1].generation == 8);
  CHECK(made[0].name != made[1].name);
}

TEST_CASE("a formation that waits too long names the missing ranks", "[group][group_store]") {
  group_rig rig(4);
  const auto& chief = rig.start(0, [&](simulated_node& self) { agree(rig, self, {.limit = 3s}); });
  rig.start(2, [&](simulated_node& self) { agree(rig, self, {.limit = 3s}); });
  rig.run();
  CHECK(group_rig::failed_with<sw::deadline_exceeded_error>(chief));
  CHECK_THAT(group_rig::text_of(chief), ContainsSubstring("rank 1, 3"));
  CHECK(rig.seconds() == Approx(3).margin(0.01));
}

TEST_CASE("a worker that waits too long says whether rank 0 can be reached", "[group][group_store]") {
  group_rig rig(3);
  SECTION("rank 0 has not started") {
    const auto& worker = rig.start(1, [&](simulated_node& self) { agree(rig, self, {.limit = 3s}); });
    rig.run();
    CHECK(group_rig::failed_with<sw::deadline_exceeded_error>(worker));
    CHECK_THAT(group_rig::text_of(worker), ContainsSubstring("rank 0, which cannot be reached"));
  }
  SECTION("rank 0 waits for another process") {
    rig.start(0, [&](simulated_node& self) { agree(rig, self, {.limit = 4s}); });
    const auto& worker = rig.start(1, [&](simulated_node& self) { agree(rig, self, {.limit = 3s}); });
    rig.run();
    CHECK(group_rig::failed_with<sw::deadline_exceeded_error>(worker));
    CHECK_THAT(group_rig::text_of(worker), ContainsSubstring("rank 0 to form the group"));
  }
}

TEST_CASE("a stop request ends the wait of a formation", "[group][group_store]") {
  group_rig rig(3);
  const auto& chief = rig.start(0, [&](simulated_node& self) { agree(rig, self); });
  const auto& worker = rig.start(1, [&](simulated_node& self) { agree(rig, self); });
  rig.world.after(2s, [&] { simulation::request_stop(*worker.process); });
  rig.world.after(2s, [&] { simulation::request_stop(*chief.process); });
  rig.run();
  CHECK(group_rig::failed_with<sw::cancelled_error>(chief));
  CHECK(group_rig::failed_with<sw::cancelled_error>(worker));
  CHECK(rig.seconds() == Approx(2).margin(0.001));
}

TEST_CASE("the first formation waits for all processes", "[group][group_store]") {
  group_rig rig(3);
  rig.start(0, [&](simulated_node& self) { CHECK(agree(rig, self, {.min_size = 1}).members.size() == 3); });
  rig.start(1, [&](simulated_node& self) { CHECK(agree(rig, self, {.min_size = 1}).members.size() == 3); });
  rig.world.after(5s, [&] { rig.start(2, [&](simulated_node& self) { agree(rig, self, {.min_size = 1}); }); });
  rig.run_well();
}

TEST_CASE("a formation after a loss goes on without the lost process when the patience has ended", "[group][group_store]") {
  group_rig rig(3);
  std::optional<sw::agreed_formation> made;
  rig.start(0, [&](simulated_node& self) { made = agree(rig, self, {.min_size = 2, .patience = 2s, .last_generation = 1}); });
  rig.start(2, [&](simulated_node& self) { CHECK(agree(rig, self, {.min_size = 2, .last_generation = 1}).place == 1); });
  rig.run_well();
  REQUIRE(made);
  CHECK(made->generation == 2);
  REQUIRE(made->members.size() == 2);
  CHECK(made->members[1].rank == 2);
  CHECK(rig.seconds() >= 2);
  CHECK(rig.seconds() < 2.2);
}

TEST_CASE("a formation after a loss includes a replacement that comes within the patience", "[group][group_store]") {
  group_rig rig(3);
  rig.start(
      0, [&](simulated_node& self) { CHECK(agree(rig, self, {.min_size = 2, .patience = 2s, .last_generation = 1}).members.size() == 3); });
  rig.start(1, [&](simulated_node& self) { CHECK(agree(rig, self, {.min_size = 2, .last_generation = 1}).members.size() == 3); });
  rig.world.after(1500ms, [&] { rig.start(2, [&](simulated_node& self) { CHECK(agree(rig, self, {.min_size = 2}).generation == 2); }); });
  rig.run_well();
  CHECK(rig.seconds() < 2);
}

TEST_CASE("a formation has at least the minimum of processes", "[group][group_store]") {
  group_rig rig(3);
  const auto& chief = rig.start(0, [&](simulated_node& self) { agree(rig, self, {.limit = 5s, .min_size = 2, .last_generation = 1}); });
  rig.run();
  CHECK(group_rig::failed_with<sw::deadline_exceeded_error>(chief));
}

TEST_CASE("a process that joins twice is a member with the identity that joined last", "[group][group_store]") {
  group_rig rig(3);
  std::optional<sw::agreed_formation> made;
  rig.start(0, [&](simulated_node& self) { made = agree(rig, self); });
  auto& lost = rig.start(1, [&](simulated_node& self) { agree(rig, self); });
  rig.world.after(1s, [&] {
    rig.network.kill(lost, false);
    rig.start(1, [&](simulated_node& self) { agree(rig, self); });
  });
  rig.world.after(2s, [&] { rig.start(2, [&](simulated_node& self) { agree(rig, self); }); });
  rig.run_well();
  REQUIRE(made);
  CHECK(made->members.at(1).identity == rig.network.newest(1)->identity);
  CHECK(made->members.at(1).identity != lost.identity);
}

TEST_CASE("a former member whose rank has another process fails", "[group][group_store]") {
  group_rig rig(2);
  rig.start(0, [&](simulated_node& self) {
    agree(rig, self, {.last_generation = 1});
    rig.world.sleep_for(1s);
  });
  auto& replacement = rig.start(1, [&](simulated_node& self) { agree(rig, self); });
  simulated_node* former = nullptr;
  rig.world.after(500ms, [&] { former = &rig.start(1, [&](simulated_node& self) { agree(rig, self, {.last_generation = 1}); }); });
  rig.run();
  REQUIRE(former != nullptr);
  CHECK(group_rig::failed_with<sw::failed_precondition_error>(*former));
  CHECK_THAT(group_rig::text_of(*former), ContainsSubstring(replacement.identity) && ContainsSubstring(former->identity));
}

TEST_CASE("a new process whose rank is a member waits for the next formation", "[group][group_store]") {
  group_rig rig(2);
  rig.start(0, [&](simulated_node& self) {
    agree(rig, self);
    rig.world.sleep_for(2s);
    CHECK(agree(rig, self, {.last_generation = 1}).members.at(1).identity == rig.network.newest(1)->identity);
  });
  rig.start(1, [&](simulated_node& self) { agree(rig, self); });
  rig.world.after(1s, [&] { rig.start(1, [&](simulated_node& self) { CHECK(agree(rig, self).generation == 2); }); });
  rig.run_well();
}

TEST_CASE("after a loss, rank 0 does not wait for a process that has announced its end", "[group][group_store]") {
  group_rig rig(3);
  std::optional<sw::agreed_formation> made;
  rig.start(0, [&](simulated_node& self) {
    rig.world.sleep_for(1s);
    made = agree(rig, self, {.patience = 5s, .last_generation = 1, .is_recovery = true});
  });
  rig.start(1, [&](simulated_node& self) { sw::announce_end(*rig.network.connect_store(self), 1, 7); });
  rig.start(2, [&](simulated_node& self) { CHECK(agree(rig, self, {.last_generation = 1, .is_recovery = true}).members.size() == 2); });
  rig.run_well();
  REQUIRE(made);
  REQUIRE(made->ended);
  CHECK(made->ended->rank == 1);
  CHECK(made->ended->cause == 7);
  CHECK(made->members.at(1).rank == 2);
  CHECK(rig.seconds() < 1.2);
}

TEST_CASE("rank 0 waits for a process that takes part again after it has announced its end", "[group][group_store]") {
  group_rig rig(2);
  const auto is_recovery = GENERATE(false, true);
  rig.start(0, [&](simulated_node& self) {
    rig.world.sleep_for(1s);
    CHECK(agree(rig, self, {.last_generation = 1}).members.size() == 2);
    if (!is_recovery) { return; }
    const auto& chief =
        agree(rig, self, {.limit = 3s, .last_generation = 2, .is_recovery = true});  // rank 1 does not announce its end again
    FAIL_CHECK("formed with " << chief.members.size());
  });
  rig.start(1, [&](simulated_node& self) {
    sw::announce_end(*rig.network.connect_store(self), 1, 7);
    agree(rig, self, {.last_generation = 1});
  });
  rig.run();
  CHECK(group_rig::failed_with<sw::deadline_exceeded_error>(*rig.network.nodes()[0]) == is_recovery);
}

TEST_CASE("workers find the replacement of rank 0, whose store begins empty", "[group][group_store]") {
  group_rig rig(3);
  auto& lost = rig.start(0, [&](simulated_node& self) { agree(rig, self); });
  rig.start(1, [&](simulated_node& self) { CHECK(agree(rig, self, {.last_generation = 4}).generation == 5); });
  rig.world.after(1s, [&] { rig.network.kill(lost, false); });
  rig.world.after(2s, [&] { rig.start(0, [&](simulated_node& self) { CHECK(agree(rig, self).generation == 5); }); });
  rig.world.after(3s, [&] { rig.start(2, [&](simulated_node& self) { CHECK(agree(rig, self).generation == 5); }); });
  rig.run_well();
}

TEST_CASE("rank 0 ends a formation when its check fails", "[group][group_store]") {
  group_rig rig(2);
  bool is_replaced = false;
  const auto check = [&] {
    if (is_replaced) { throw sw::failed_precondition_error("another chief"); }
  };
  const auto& chief = rig.start(0, [&](simulated_node& self) { agree(rig, self, {.check = check}); });
  rig.world.after(1s, [&] { is_replaced = true; });
  rig.run();
  CHECK(group_rig::failed_with<sw::failed_precondition_error>(chief));
  CHECK(rig.seconds() < 1.1);
}

TEST_CASE("values of another program in the store are an error", "[group][group_store]") {
  group_rig rig(2);
  SECTION("in place of a member") {
    const auto& chief = rig.start(0, [&](simulated_node& self) { agree(rig, self); });
    rig.start(1, [&](simulated_node& self) {
      const auto store = rig.network.connect_store(self);
      rig.world.sleep_for(1s);
      store->set("join/1", store->get("round").value() + "\nGET / HTTP/1.1");
    });
    rig.run();
    CHECK(group_rig::failed_with<sw::data_loss_error>(chief));
  }
  SECTION("in place of a formation") {
    const std::string value = GENERATE("1 x\nx", "x");
    rig.start(0, [&](simulated_node& self) {
      const auto store = rig.network.connect_store(self);
      store->set("round", "1 x");
      store->set("formed", value);
      rig.world.sleep_for(1s);
    });
    const auto& worker = rig.start(1, [&](simulated_node& self) { agree(rig, self); });
    rig.run();
    CHECK(group_rig::failed_with<sw::data_loss_error>(worker));
  }
}

TEST_CASE("each process has an identity of its own", "[group][group_store]") {
  const auto one = sw::make_identity();
  CHECK(one != sw::make_identity());
  CHECK_THAT(one, ContainsSubstring(std::to_string(::getpid())));
}
