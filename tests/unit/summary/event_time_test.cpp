// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"

#include <stepwell/base/clock.hpp>
#include <stepwell/summary/detail/event_time.hpp>

#include <chrono>
#include <memory>

namespace sw = stepwell;
using namespace std::chrono_literals;

namespace {

double now_of(const sw::clock& time) { return std::chrono::duration<double>(time.wall_now().time_since_epoch()).count(); }

}  // namespace

TEST_CASE("the times of events do not decrease, and are not before or after the events", "[summary][event_time]") {
  const double begin = now_of(*sw::system_clock());
  sw::summary::event_time times(sw::system_clock());
  double last = begin - 2e-6;  // times are in whole microseconds, and doubles are rounded
  int different = 0;
  for (int i = 0; i < 1'000'000 && different < 4; ++i) {
    const double time = times.now();
    REQUIRE(time >= last);
    different += time > last ? 1 : 0;
    last = time;
  }
  CHECK(last <= now_of(*sw::system_clock()));
  CHECK(different >= 2);
}

TEST_CASE("with another clock than that of the machine, each event has its exact time", "[summary][event_time]") {
  const auto clock = std::make_shared<sw::manual_clock>(sw::clock::wall_time(1000s));
  sw::summary::event_time times(clock);
  CHECK(times.now() == 1000);
  clock->advance(1us);
  CHECK(times.now() == 1000.000001);
}
