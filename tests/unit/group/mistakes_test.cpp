// SPDX-License-Identifier: Apache-2.0
#include "mistakes.hpp"
#include "support/catch.hpp"
#include "support/group_schedule.hpp"

#include <stepwell/base/log.hpp>

#include <cstdint>
#include <iostream>

namespace sw = stepwell;

TEST_CASE("the copies of the sources without a mistake keep all promises", "[group][mistakes]") {
  const auto level = sw::set_log_level(sw::log_level::error);
  for (std::uint64_t seed = 1; seed <= 300; ++seed) { CHECK(sw::test::run_schedule(seed).broken.empty()); }
  sw::set_log_level(level);
}

TEST_CASE("random schedules find each seeded mistake in the protocol of groups", "[group][mistakes]") {
  const auto level = sw::set_log_level(sw::log_level::error);
  constexpr std::uint64_t most = 2'000;
  for (const auto& [mistake, name] : sw::test::mistakes) {
    sw::test::active_mistake = mistake;
    std::uint64_t seed = 1;
    while (seed <= most && sw::test::run_schedule(seed).broken.empty()) { ++seed; }
    std::cout << name << ": found by schedule " << seed << '\n';
    INFO(name);
    CHECK(seed <= most);
  }
  sw::test::active_mistake = sw::test::mistake::none;
  sw::set_log_level(level);
}
