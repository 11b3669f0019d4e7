// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"
#include "support/recovery_rig.hpp"
#include "support/toy_model.hpp"

#include <stepwell/data/source.hpp>
#include <stepwell/hooks/stop_hooks.hpp>
#include <stepwell/model/model_session.hpp>
#include <stepwell/session/any_session.hpp>
#include <stepwell/session/monitored_session.hpp>

#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

namespace sw = stepwell;
using namespace sw::test;

namespace {

/// A model whose results count their copies, and cannot be assigned.
struct copying_model {
  struct result {
    explicit result(int& counter) : copies(&counter) {}
    result(const result& other) : copies(other.copies) { ++*copies; }
    result(result&&) noexcept = default;
    result& operator=(const result&) = delete;
    result& operator=(result&&) = delete;
    int* const copies;
  };
  int copies = 0;
  std::int64_t steps = 0;
  result step(std::uint64_t /*number*/) {
    ++steps;
    return result(copies);
  }
  sw::variable_list variables() { return sw::variables({{"steps", steps}}); }
};

}  // namespace

TEST_CASE("run_all does all steps and returns the last result, their number and the stop reason", "[session][run_all]") {
  adding_model model;
  sw::monitored_session session(model);
  const auto [last, steps, why, values] = session.run_all(std::vector<std::int64_t>{1, 2, 3});
  REQUIRE(last);
  CHECK(last->value.loss == 6);
  CHECK(last->global_step == 3);
  CHECK(steps == 3);
  CHECK(why.cause == sw::stop_cause::end_of_data);
}

TEST_CASE("run_all ends at a stop, and does nothing after it", "[session][run_all]") {
  counting_model model;
  sw::monitored_session session(model, sw::stop_at_step(5));
  const auto loop = session.run_all();
  CHECK(loop.last->value == 5);
  CHECK(loop.why.text == "step 5 is done");
  const auto again = session.run_all();
  CHECK_FALSE(again.last);
  CHECK(again.steps == 0);
  CHECK(again.why.cause == sw::stop_cause::last_step);
}

TEST_CASE("run_all continues a source where it stands, and copies or assigns no result", "[session][run_all]") {
  copying_model model;
  sw::monitored_session session(model);
  auto numbers = sw::data::counter({.count = 10});
  auto some = sw::data::take(numbers, 4);
  CHECK(session.run_all(some).steps == 4);
  CHECK(session.run_all(numbers).steps == 6);
  CHECK(model.copies == 0);
}

TEST_CASE("run_all throws what a loop throws", "[session][run_all]") {
  adding_model model;
  model.before = [](std::int64_t batch) {
    if (batch == 2) { throw std::runtime_error("two"); }
  };
  sw::monitored_session session(model);
  CHECK_THROWS_WITH(session.run_all(std::vector<std::int64_t>{1, 2}), "two");
}

TEST_CASE("singular and type-erased sessions have run_all", "[session][run_all]") {
  adding_model model;
  sw::singular_monitored_session singular(model);
  CHECK(singular.run_all(std::vector<std::int64_t>{1, 2}).steps == 2);
  using erased_type = sw::any_session<adding_model::result, std::vector<std::int64_t>>;
  erased_type erased(std::move(singular));
  std::vector<std::int64_t> batches{3, 4};
  const auto loop = erased.run_all(batches);
  CHECK(loop.steps == 2);
  CHECK(loop.last->value.loss == 10);
}

TEST_CASE("next does one step from a source, and returns nothing at the end of the data or after a stop", "[session][next]") {
  adding_model model;
  sw::monitored_session session(model, sw::stop_at_step(4));
  auto some = sw::data::source(std::vector<std::int64_t>{1, 2, 3});
  std::vector<std::int64_t> steps;
  while (const auto step = session.next(some)) { steps.push_back(step->global_step); }
  CHECK(steps == std::vector<std::int64_t>{1, 2, 3});
  CHECK(session.stop_reason().cause == sw::stop_cause::end_of_data);
  auto others = sw::data::source(std::vector<std::int64_t>{10, 20});
  CHECK(session.next(others)->value.loss == 16);
  CHECK_FALSE(session.next(others));
  CHECK(session.stop_reason().cause == sw::stop_cause::last_step);
  session.close();
  CHECK_FALSE(session.next(others));
  counting_model counting;
  sw::monitored_session without(counting, sw::stop_at_step(2));
  CHECK(without.next()->value == 1);
  CHECK(without.next()->value == 2);
  CHECK_FALSE(without.next());
}

TEST_CASE("next saves and restores the position of its source, repeats a batch after a failure, and uses the source in the call only",
          "[session][next][recovery]") {
  recovery_rig rig;
  {
    auto session = rig.start_saving_every(2);
    counting_source source;
    std::vector<std::int64_t> seen;
    rig.model.before = failing_batches{{4}, &seen};
    std::vector<std::int64_t> steps;
    for (int i = 0; i < 6; ++i) { steps.push_back(session.next(source)->global_step); }
    CHECK(steps == std::vector<std::int64_t>{1, 2, 3, 3, 4, 5});
    CHECK(seen == std::vector<std::int64_t>{1, 2, 3, 4, 3, 4, 5});  // the newest checkpoint is that of step 2
    source.seek(100);                                               // stands for a source that is destroyed before the session
    session.close();
  }
  adding_model resumed;
  auto saver = rig.saver_hook(2);
  sw::session_setup setup = rig.setup;
  setup.find_checkpoint = saver.checkpoint_finder();
  sw::monitored_session session(setup, resumed, std::move(saver));
  CHECK(session.global_step() == 5);
  counting_source source;
  CHECK(session.next(source)->value.loss == 1 + 2 + 3 + 4 + 5 + 6);
  for (const auto& step : session.steps(source)) {  // releases the source first
    if (step.global_step == 7) { break; }
  }
  CHECK(session.next(source)->global_step == 8);
  session.release(source);
  counting_source other;
  CHECK(session.next(other)->global_step == 9);
}
