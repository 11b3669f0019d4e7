// SPDX-License-Identifier: Apache-2.0
//
// Kills training programs at random instants and starts them again until they end. Their result must be the same as without kills.
// STEPWELL_KILLS sets the number of kills for each feature (20), STEPWELL_KILL_SEED selects them.
#include "support/catch.hpp"
#include "support/child_process.hpp"
#include "support/temporary_directory.hpp"

#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>

namespace {

using namespace stepwell::test;

std::uint64_t number_from(const char* name, std::uint64_t otherwise) {
  const char* said = std::getenv(name);
  return said != nullptr ? std::strtoull(said, nullptr, 10) : otherwise;
}

/// Runs the program, and kills it after `wait` if that is given. Returns its line, or nothing if it was killed.
std::optional<std::string> run(const std::string& feature, const std::string& directory, std::optional<std::chrono::microseconds> wait) {
  child_process process({STEPWELL_TRAIN_FEATURES, feature, directory});
  if (wait) {
    std::this_thread::sleep_for(*wait);
    process.send(SIGKILL);
  }
  auto line = process.line();
  const auto how = process.wait();
  if (WIFSIGNALED(how)) {
    REQUIRE(WTERMSIG(how) == SIGKILL);
    return std::nullopt;
  }
  REQUIRE(WEXITSTATUS(how) == 0);
  return line;
}

/// Returns the feature with a blocking session. An awaited session must have the same result.
std::string blocking_form_of(const std::string& feature) {
  const std::string prefix = "awaited_";
  return feature.starts_with(prefix) ? feature.substr(prefix.size()) : feature;
}

}  // namespace

TEST_CASE(
    "prefetch, epochs, the best checkpoint and evaluation beside the training, also awaited, and all ways to save survive random kills",
    "[fault][kill]") {
  const std::string feature = GENERATE("prefetch", "epochs", "best", "beside", "overhead", "large", "large_staged", "fence", "fence_staged",
                                       "awaited_prefetch", "awaited_epochs", "awaited_best", "awaited_beside");
  const auto seed = number_from("STEPWELL_KILL_SEED", std::random_device{}());
  const auto wanted = number_from("STEPWELL_KILLS", 20);
  CAPTURE(feature, seed);
  const temporary_directory directory;
  const auto begun = std::chrono::steady_clock::now();
  const auto expected = run(blocking_form_of(feature), directory / "whole", std::nullopt);
  const auto length = std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - begun);
  REQUIRE(expected);
  std::mt19937_64 random(seed);
  std::uniform_int_distribution<std::int64_t> instant(1, length.count() / 5);
  std::uint64_t kills = 0;
  int finished = 0;
  while (kills < wanted) {
    const auto run_dir = directory / ("killed-" + std::to_string(finished));
    std::optional<std::string> line;
    while (!line) {
      const auto wait = kills < wanted ? std::optional(std::chrono::microseconds(instant(random))) : std::nullopt;
      line = run(feature, run_dir, wait);
      if (!line) { ++kills; }
    }
    CHECK(*line == *expected);
    ++finished;
  }
  std::cout << feature << ": " << kills << " kills, seed " << seed << ", " << finished << " runs that ended: " << *expected << std::endl;
}
