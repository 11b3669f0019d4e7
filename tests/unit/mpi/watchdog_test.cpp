// SPDX-License-Identifier: Apache-2.0
#include <stepwell/mpi/detail/watchdog.hpp>

#include "support/catch.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>

using namespace stepwell;
using namespace stepwell::mpi::detail;
using namespace std::chrono_literals;

namespace {

/// A watchdog with a limit of 5 s on a manual clock. Its period is 0.25 s.
struct watched {
  /// Lets the watchdog look once more, and returns when it waits again or has reported. (It still checks the progress after `poll`.)
  void look() {
    REQUIRE(time->wait_for_pending(1));
    time->advance(250ms);
    while (!has_expired && time->pending() == 0) { std::this_thread::yield(); }
  }
  /// Lets the watchdog look `times` times.
  void look(int times) {
    for (int i = 0; i < times && !has_expired; ++i) { look(); }
  }

  std::shared_ptr<manual_clock> time = std::make_shared<manual_clock>();
  progress_mark mark;
  std::atomic<int> looks = 0;
  std::atomic<bool> has_expired = false;
  progress late;
  watchdog dog{time,
               5s,
               mark,
               {.poll = [this] { ++looks; },
                .expired =
                    [this](const progress& operation) {
                      late = operation;
                      has_expired = true;
                    }}};
};

}  // namespace

TEST_CASE("The watchdog reports an operation that lasts for the limit, with its number", "[mpi]") {
  watched all;
  { const progress_mark::scope first(all.mark, operation::sum); }
  const progress_mark::scope second(all.mark, operation::broadcast);
  all.look(18);
  CHECK_FALSE(all.has_expired);
  CHECK(all.looks == 18);
  all.look(4);
  REQUIRE(all.has_expired);
  CHECK(all.late == progress{2, operation::broadcast});
}

TEST_CASE("Many operations together may last longer than the limit", "[mpi]") {
  watched all;
  for (int i = 0; i < 100; ++i) {
    const progress_mark::scope one(all.mark, operation::sum);
    all.look();
  }
  CHECK_FALSE(all.has_expired);
}

TEST_CASE("The watchdog ignores the time between operations, and formations", "[mpi]") {
  watched all;
  { const progress_mark::scope one(all.mark, operation::sum); }
  all.look(50);
  CHECK_FALSE(all.has_expired);
  const progress_mark::scope forming(all.mark, operation::form);
  all.look(50);
  CHECK_FALSE(all.has_expired);
}

TEST_CASE("The watchdog ends while it waits", "[mpi]") {
  watched all;
  REQUIRE(all.time->wait_for_pending(1));
}

TEST_CASE("Progress is the same after it was packed", "[mpi]") {
  const progress one{std::uint64_t{1} << 60U, operation::broadcast};
  CHECK(progress::unpacked(one.packed()) == one);
}
