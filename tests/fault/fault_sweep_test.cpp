// SPDX-License-Identifier: Apache-2.0
//
// Refuses each request for a thread, a descriptor and a large allocation once, in separate processes.
#include "support/catch.hpp"
#include "support/child_process.hpp"
#include "support/temporary_directory.hpp"

#include <sys/wait.h>
#include <algorithm>
#include <cstdint>
#include <sstream>
#include <string>

using stepwell::test::child_process;
using stepwell::test::temporary_directory;

namespace {

/// The output of `live_under_faults`.
struct report {
  std::string how;
  std::uint64_t threads = 0;
  std::uint64_t descriptors = 0;
  std::uint64_t memory = 0;
  std::uint64_t open = 0;  // descriptors open at the end
  std::string text;
  int status = 0;  // of waitpid
};

report live(const std::string& scenario, const std::string& resource, std::uint64_t first, bool and_all_later) {
  const temporary_directory directory;
  child_process child(
      {STEPWELL_LIVE_UNDER_FAULTS, scenario, resource, std::to_string(first), and_all_later ? "always" : "once", directory.path()});
  report said;
  std::istringstream line(child.line());
  line >> said.how >> said.threads >> said.descriptors >> said.memory >> said.open;
  std::getline(line, said.text);
  said.status = child.wait();
  return said;
}

std::uint64_t requests_in(const report& said, const std::string& resource) {
  if (resource == "threads") { return said.threads; }
  return resource == "descriptors" ? said.descriptors : said.memory;
}

/// Runs a scenario without faults, once for each test.
report undisturbed(const std::string& scenario) {
  const auto said = live(scenario, "threads", 0, false);
  INFO(scenario << ": " << said.how << said.text);
  REQUIRE(said.status == 0);
  REQUIRE(said.how == "done");
  return said;
}

/// Refuses each `stride`th request for `resource`: once that request alone, once with all later ones. Returns the
/// number of runs that ended with an error.
int sweep(const std::string& scenario, const std::string& resource, const report& expected, std::uint64_t stride = 1) {
  int errors = 0;
  for (std::uint64_t number = 1; number <= requests_in(expected, resource); number += stride) {
    for (const bool and_all_later : {false, true}) {
      const auto said = live(scenario, resource, number, and_all_later);
      INFO(scenario << " " << resource << " " << number << (and_all_later ? " always" : " once"));
      INFO("status " << said.status << ", said: " << said.how << said.text);
      CHECK(WIFEXITED(said.status));  // otherwise a crash, or SIGALRM after a hang
      CHECK((said.status == 0));      // otherwise another exception, a failed next start, or a leak
      CHECK((said.how == "done" || said.how == "error"));
      CHECK(said.open == expected.open);  // no descriptor has leaked
      errors += said.how == "error" ? 1 : 0;
    }
  }
  return errors;
}

}  // namespace

TEST_CASE("a thread that cannot be created is an error where it is needed, never a crash or a hang", "[fault][sweep]") {
  const std::string scenario = GENERATE("pools", "pool_dropped_inside", "alarms", "offloaded_calls", "coordinated_threads", "signals");
  const auto expected = undisturbed(scenario);
  REQUIRE(expected.threads > 0);
  CHECK(sweep(scenario, "threads", expected) > 0);
}

TEST_CASE("a descriptor that cannot be had for watching signals is an error", "[fault][sweep]") {
  const auto expected = undisturbed("signals");
  REQUIRE(expected.descriptors > 0);
  CHECK(sweep("signals", "descriptors", expected) > 0);
}

TEST_CASE("sessions without threads, descriptors or memory: an error or success, and the next start works", "[fault][sweep]") {
  const std::string scenario = GENERATE("blocking_sessions", "awaited_sessions", "featured_sessions");
  const auto [resource, stride] = GENERATE(table<std::string, std::uint64_t>({{"threads", 1}, {"descriptors", 9}, {"memory", 5}}));
  const auto expected = undisturbed(scenario);
  REQUIRE(requests_in(expected, resource) > 10);
  CHECK(sweep(scenario, resource, expected, stride) > 0);
}

TEST_CASE("sessions without threads, descriptors or memory, at each request", "[fault][.every]") {
  const std::string scenario = GENERATE("blocking_sessions", "awaited_sessions", "featured_sessions");
  const std::string resource = GENERATE("threads", "descriptors", "memory");
  const auto expected = undisturbed(scenario);
  WARN(scenario << ": " << requests_in(expected, resource) << " requests for " << resource << " are refused, one after the other");
  CHECK(sweep(scenario, resource, expected) > 0);
}
