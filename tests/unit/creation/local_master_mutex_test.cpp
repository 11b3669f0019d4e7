// SPDX-License-Identifier: Apache-2.0
#include <stepwell/creation/detail/local_master.hpp>

#include "support/catch.hpp"

#include <atomic>
#include <string>
#include <thread>
#include <vector>

namespace sw = stepwell;
using entry = sw::fair_shared_mutex::entry;

namespace {

/// Waits until `count` threads wait at the gate. They are blocked there, so the test does not depend on time.
void until_waiting(const sw::fair_shared_mutex& gate, int count) {
  while (gate.waiting() < count) { std::this_thread::yield(); }
}

/// Starts a thread that enters and leaves the gate and records its name in between.
std::jthread visitor(sw::fair_shared_mutex& gate, entry as, std::string& story, char name) {
  return std::jthread([&gate, as, &story, name] {
    gate.enter(as);
    story += name;
    gate.leave(as);
  });
}

}  // namespace

TEST_CASE("the exclusive owner keeps all others out, and they enter in the order of their arrival", "[session][gate]") {
  sw::fair_shared_mutex gate;
  std::string story;
  gate.enter(entry::alone);
  {
    std::vector<std::jthread> visitors;
    for (int i = 0; i < 5; ++i) {
      visitors.push_back(visitor(gate, entry::alone, story, static_cast<char>('a' + i)));
      until_waiting(gate, i + 1);
    }
    CHECK(story.empty());
    gate.leave(entry::alone);
  }
  CHECK(story == "abcde");
  CHECK(gate.waiting() == 0);
}

TEST_CASE("many share until an exclusive owner waits; later ones wait behind it", "[session][gate]") {
  sw::fair_shared_mutex gate;
  std::string story;
  gate.enter(entry::shared);
  gate.enter(entry::shared);
  {
    const auto alone = visitor(gate, entry::alone, story, 'a');
    until_waiting(gate, 1);
    const auto late = visitor(gate, entry::shared, story, 's');
    until_waiting(gate, 2);
    gate.leave(entry::shared);
    CHECK(gate.waiting() == 2);  // one thread is still inside
    gate.leave(entry::shared);
  }
  CHECK(story == "as");
}

TEST_CASE("all waiters at the front that want to share enter together", "[session][gate]") {
  sw::fair_shared_mutex gate;
  std::atomic<int> inside = 0;
  gate.enter(entry::alone);
  std::vector<std::jthread> visitors;
  for (int i = 0; i < 3; ++i) {
    visitors.emplace_back([&] {
      gate.enter(entry::shared);
      ++inside;
      while (inside < 3) { std::this_thread::yield(); }  // never ends if the gate admits only one at a time
      gate.leave(entry::shared);
    });
  }
  until_waiting(gate, 3);
  gate.leave(entry::alone);
  visitors.clear();
  CHECK(inside == 3);
}

TEST_CASE("an owner may leave on another thread", "[session][gate]") {
  sw::fair_shared_mutex gate;
  gate.enter(entry::alone);
  std::jthread([&] { gate.leave(entry::alone); }).join();
  gate.enter(entry::alone);
  gate.leave(entry::alone);
}
