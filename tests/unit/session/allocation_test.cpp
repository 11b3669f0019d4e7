// SPDX-License-Identifier: Apache-2.0
//
// Tests in their own program, because they count every allocation of the process.
#include "support/catch.hpp"
#include "support/failing_model.hpp"
#include "support/idle_hooks.hpp"

#include <stepwell/base/log.hpp>
#include <stepwell/hooks/epoch_mean_hook.hpp>
#include <stepwell/model/model_session.hpp>

#include <atomic>
#include <cstdlib>
#include <new>

namespace {
std::atomic<long> allocations = 0;
std::atomic<long> alive = 0;

void free_counted(void* memory) noexcept {
  if (memory != nullptr) { alive.fetch_sub(1, std::memory_order_relaxed); }
  std::free(memory);
}
}  // namespace

#pragma GCC diagnostic ignored "-Wmismatched-new-delete"  // false warning of g++ 12: these two do match

void* operator new(std::size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* memory = std::malloc(size)) {
    alive.fetch_add(1, std::memory_order_relaxed);
    return memory;
  }
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { free_counted(memory); }
void operator delete(void* memory, std::size_t) noexcept { free_counted(memory); }

namespace sw = stepwell;

namespace {
/// An endless epoch.
struct one_epoch : sw::test::repeating_source {
  static std::uint64_t epoch() { return 0; }
  static bool is_last_of_epoch() { return false; }
};
}  // namespace

TEST_CASE("a million runs through six idle hooks allocate nothing", "[session][cost]") {
  sw::test::tiny_model model;
  auto session = sw::test::session_with_six_idle_hooks(model);
  session.run(0.5f);
  const long before = allocations;
  for (int i = 0; i < 1'000'000; ++i) { session.run(0.5f); }
  CHECK(allocations - before == 0);
}

TEST_CASE("a loop of a million steps allocates once, for the loop", "[session][cost]") {
  sw::test::tiny_model model;
  auto session = sw::test::session_with_six_idle_hooks(model);
  sw::test::repeating_source source;
  const long before = allocations;
  long after_first = 0;
  for (const auto& step : session.steps(source)) {
    if (step.global_step == 1) { after_first = allocations; }
    if (step.global_step == 1'000'000) { break; }
  }
  CHECK(after_first - before <= 4);       // the coroutine frame of the loop, and the name and position of the source
  CHECK(allocations - after_first <= 1);  // the end of the loop
}

TEST_CASE("a hook fetches a value with a long name without an allocation", "[session][cost]") {
  sw::test::tiny_model model;
  sw::monitored_session session(
      model, sw::epoch_mean_hook{sw::tag("a name that does not fit into a short string", &sw::test::tiny_model::result::loss)});
  one_epoch source;
  long after_first = 0;
  for (const auto& step : session.steps(source)) {
    if (step.global_step == 1) { after_first = allocations; }
    if (step.global_step == 1'000) { break; }
  }
  CHECK(allocations - after_first <= 1);  // the end of the loop
}

TEST_CASE("10,000 recoveries in a row leak nothing", "[session][cost][recovery]") {
  const auto level = sw::set_log_level(sw::log_level::error);
  sw::test::failing_model model;
  sw::test::recovering_source source;
  sw::monitored_session session(sw::training_options{.retry = {.initial_backoff = 0}}, sw::test::keeping_creator{&model});
  long after_a_thousand = 0;
  for (const auto& step : session.steps(source)) {
    CHECK((step.global_step == 1 || step.attempt == 2));
    if (step.global_step == 1'000) { after_a_thousand = alive; }
    if (step.global_step == 10'000) { break; }
    model.fails_next = true;
  }
  CHECK(session.metrics().recoveries == 9'999);
  CHECK(alive - after_a_thousand <= 0);
  session.close();
  sw::set_log_level(level);
}
