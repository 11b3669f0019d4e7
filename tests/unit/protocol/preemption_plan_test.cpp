// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"

#include <stepwell/protocol/preemption_plan.hpp>

#include <chrono>
#include <string>

namespace sw = stepwell;
using namespace std::chrono_literals;
using choice = sw::preemption_choice;

namespace {

/// Returns facts in which 1000 bytes took 10 s. The state has 400 bytes, which take 4 s, or 5 s with the margin.
sw::preemption_facts facts(double left, sw::save_backlog under_way = {}) {
  return {.left = std::chrono::duration<double>(left),
          .state_bytes = 400,
          .under_way = under_way,
          .measured_bytes = 1000,
          .measured_time = 10s};
}

}  // namespace

TEST_CASE("a state that fits into the time left, with a margin, is saved; else nothing new", "[session][preemption]") {
  CHECK(sw::plan_preemption(facts(5)).choice == choice::save);
  CHECK(sw::plan_preemption(facts(4.99)).choice == choice::leave);
  CHECK(sw::plan_preemption(facts(4.99)).for_all->count() == Approx(5));
}

TEST_CASE("with no time left and the process alive, the state is saved", "[session][preemption]") {
  CHECK(sw::plan_preemption(facts(0)).choice == choice::save);
  CHECK(sw::plan_preemption(facts(0, {.writing_bytes = 400, .writing_for = 2s, .waiting_bytes = 400})).choice == choice::save);
  CHECK(sw::plan_preemption({.left = 0s, .state_bytes = 400}).choice == choice::save);
}

TEST_CASE("saves in progress come first in the plan, without the part that is already written", "[session][preemption]") {
  const sw::save_backlog half{.writing_bytes = 400, .writing_for = 2s, .waiting_bytes = 0};
  CHECK(sw::plan_preemption(facts(7.5, half)).choice == choice::save);
  CHECK(sw::plan_preemption(facts(7.49, half)).choice == choice::finish);
  CHECK(sw::plan_preemption(facts(2.5, half)).choice == choice::finish);
  CHECK(sw::plan_preemption(facts(2.49, half)).choice == choice::leave);
  const sw::save_backlog two{.writing_bytes = 400, .writing_for = 2s, .waiting_bytes = 400};
  CHECK(sw::plan_preemption(facts(12.5, two)).choice == choice::save);
  CHECK(sw::plan_preemption(facts(7.5, two)).choice == choice::finish);
  CHECK(sw::plan_preemption(facts(7.49, two)).choice == choice::leave);
}

TEST_CASE("a save that takes longer than those before says that the disk has become slower", "[session][preemption]") {
  const sw::save_backlog late{.writing_bytes = 400, .writing_for = 8s, .waiting_bytes = 0};  // 50 bytes a second
  CHECK(sw::plan_preemption(facts(10, late)).choice == choice::save);
  CHECK(sw::plan_preemption(facts(9.99, late)).choice == choice::finish);
}

TEST_CASE("while nothing is measured the state is saved", "[session][preemption]") {
  const sw::preemption_facts unknown{.left = 1s, .state_bytes = 1'000'000'000, .under_way = {.writing_bytes = 400, .writing_for = 2s}};
  CHECK(sw::plan_preemption(unknown).choice == choice::save);
  CHECK_FALSE(sw::plan_preemption(unknown).for_all);
}

TEST_CASE("a plan says what it is, and why", "[session][preemption]") {
  const sw::save_backlog under_way{.writing_bytes = 400, .writing_for = 0s, .waiting_bytes = 0};
  CHECK(sw::plan_preemption(facts(30)).to_string() == "the state is saved: 5 s expected, 30 s left");
  CHECK(sw::plan_preemption(facts(6, under_way)).to_string() ==
        "no new save is started: 10 s expected, 6 s left; saves under way are finished, 5 s expected");
  CHECK(sw::plan_preemption(facts(3)).to_string() == "no new save is started: 5 s expected, 3 s left");
  CHECK(sw::plan_preemption(facts(3, under_way)).to_string() ==
        "no new save is started: 10 s expected, 3 s left; saves under way are not expected to finish in time");
  CHECK(sw::plan_preemption({.left = 30s, .state_bytes = 400}).to_string() == "the state is saved: no save was measured yet, 30 s left");
}
