// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"
#include "support/group_schedule.hpp"

#include <stepwell/base/log.hpp>

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>

namespace sw = stepwell;

namespace {

std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

std::string lines(const std::vector<std::string>& all) {
  std::string text;
  for (const auto& line : all) { text += line + "\n"; }
  return text;
}

}  // namespace

// STEPWELL_SCHEDULES is the number of schedules. STEPWELL_SCHEDULE_SEED prints the events of one schedule.
TEST_CASE("in random schedules of losses, freezes, cuts, stops and late writers, all ranks stay at equal steps and progress",
          "[group][schedules]") {
  const auto level = sw::set_log_level(sw::log_level::error);
  const auto only = number_from("STEPWELL_SCHEDULE_SEED", 0);
  const auto first = only == 0 ? 1 : only;
  const auto count = only == 0 ? number_from("STEPWELL_SCHEDULES", 2'000) : 1;
  std::uint64_t finished = 0;
  std::uint64_t formed_again = 0;
  int broken = 0;
  for (auto seed = first; seed < first + count && broken < 5; ++seed) {
    const auto result = sw::test::run_schedule(seed, only != 0);
    if (only != 0) { std::cout << lines(result.story); }
    if (!result.broken.empty()) {
      ++broken;
      FAIL_CHECK("repeat with STEPWELL_SCHEDULE_SEED=" << seed << ":\n" << lines(result.broken));
    }
    finished += result.finished > 0 ? 1 : 0;
    formed_again += result.generations > 1 ? 1 : 0;
  }
  if (count >= 2'000) {  // the schedules are neither too kind nor too cruel
    CHECK(finished > count / 2);
    CHECK(formed_again > count / 5);
  }
  sw::set_log_level(level);
}

TEST_CASE("a seed repeats its schedule", "[group][schedules]") {
  const auto level = sw::set_log_level(sw::log_level::error);
  for (const std::uint64_t seed : {3U, 4U, 5U}) {
    const auto one = sw::test::run_schedule(seed, true);
    CHECK(one.points > 0);
    CHECK(one.story == sw::test::run_schedule(seed, true).story);
  }
  sw::set_log_level(level);
}
