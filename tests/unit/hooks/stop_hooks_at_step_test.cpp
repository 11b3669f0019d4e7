// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"
#include "support/log_capture.hpp"
#include "support/toy_model.hpp"

#include <stepwell/hooks/function_hooks.hpp>
#include <stepwell/hooks/nan_hooks.hpp>
#include <stepwell/hooks/progress_hook.hpp>
#include <stepwell/hooks/stop_hooks.hpp>
#include <stepwell/model/model_session.hpp>

#include <cstdint>
#include <functional>
#include <limits>
#include <stdexcept>
#include <utility>
#include <vector>

namespace sw = stepwell;
using sw::test::counting_model;

namespace {

/// A model that owns its global step, so that a test can start at any step and skip steps.
struct jumping_model {
  using result = int;
  std::int64_t steps = 0;
  std::int64_t stride = 1;
  int step() { return static_cast<int>(steps += stride); }
  std::int64_t& global_step() { return steps; }
  sw::variable_list variables() { return sw::variables({{"stride", stride}}); }
};

int runs_until_stop(jumping_model& model, sw::stop_at_step_options options) {
  sw::monitored_session session(model, sw::stop_at_step_hook{options});
  int runs = 0;
  while (!session.should_stop()) {
    session.run();
    ++runs;
  }
  return runs;
}

}  // namespace

TEST_CASE("HOOK-STOP-1 exactly one of num_steps and last_step must be given", "[hooks][stop_at_step]") {
  CHECK_THROWS_AS(sw::stop_at_step_hook{{}}, sw::invalid_argument_error);
  CHECK_THROWS_AS((sw::stop_at_step_hook{{.num_steps = 1, .last_step = 1}}), sw::invalid_argument_error);
}

TEST_CASE("D-31 a negative count of steps is refused by name", "[hooks][stop_at_step]") {
  CHECK_THROWS_WITH(sw::stop_at_step_hook{{.last_step = -1}}, ContainsSubstring("last_step is -1"));
  CHECK_THROWS_WITH(sw::stop_at_step_hook{{.num_steps = -1}}, ContainsSubstring("num_steps is -1"));
  CHECK_THROWS_WITH(sw::stop_after_n_evals_hook{{.num_evals = -1}}, ContainsSubstring("num_evals is -1"));
  CHECK_THROWS_WITH(sw::progress_printer{{.last_step = -1}}, ContainsSubstring("last_step is -1"));
  CHECK_THROWS_WITH((sw::rollback_on_nan_hook{{.max_rollbacks = -1}, &jumping_model::steps, sw::skip_batch()}),
                    ContainsSubstring("max_rollbacks is -1"));
}

TEST_CASE("HOOK-STOP-5 the loop ends with the last step, or the first beyond it", "[hooks][stop_at_step]") {
  jumping_model by_one;
  CHECK(runs_until_stop(by_one, {.last_step = 10}) == 10);
  jumping_model by_three{.stride = 3};
  CHECK(runs_until_stop(by_three, {.last_step = 10}) == 4);
  CHECK(by_three.steps == 12);
  jumping_model started{.steps = 5};
  CHECK(runs_until_stop(started, {.num_steps = 10}) == 10);
  CHECK(started.steps == 15);
}

TEST_CASE("HOOK-STOP-6 a run that starts at step 3 does what is left", "[hooks][stop_at_step]") {
  jumping_model last{.steps = 3};
  CHECK(runs_until_stop(last, {.last_step = 5}) == 2);
  jumping_model more{.steps = 3};
  CHECK(runs_until_stop(more, {.num_steps = 4}) == 4);
}

TEST_CASE("HOOK-STOP-2 the end is computed once, also for a hook that is used in a second session", "[hooks][stop_at_step]") {
  sw::stop_at_step_hook hook{{.num_steps = 4}};
  const auto runs = [&](jumping_model& model) {
    sw::monitored_session session(model, std::ref(hook));
    int done = 0;
    for (; !session.should_stop(); ++done) { session.run(); }
    return done;
  };
  jumping_model first{.steps = 3};
  CHECK(runs(first) == 4);
  CHECK(hook.last_step() == 7);
  jumping_model rolled_back{.steps = 5};
  CHECK(runs(rolled_back) == 2);
  CHECK(rolled_back.steps == 7);
}

TEST_CASE("HOOK-STOP-8 workers that share a step share its end, and each may do the step it has begun", "[hooks][stop_at_step]") {
  struct worker_model {
    std::int64_t* shared;
    int unused = 0;
    void step() { ++*shared; }
    std::int64_t& global_step() { return *shared; }
    sw::variable_list variables() { return sw::variables({{"unused", unused}}); }
  };
  std::int64_t shared = 0;
  worker_model one{.shared = &shared};
  worker_model two{.shared = &shared};
  sw::monitored_session first(one, sw::stop_at_step_hook{{.last_step = 10}});
  sw::monitored_session second(two, sw::stop_at_step_hook{{.last_step = 10}});
  while (!first.should_stop() || !second.should_stop()) {
    if (!first.should_stop()) { first.run(); }
    if (!second.should_stop()) { second.run(); }
  }
  CHECK(shared == 11);  // the first session checked at step 9, before the second one made step 10
}

TEST_CASE("more steps than can be counted are as many as can", "[hooks][stop_at_step]") {
  jumping_model model{.steps = 5};
  sw::monitored_session session(model, sw::stop_at_step_hook{{.num_steps = std::numeric_limits<std::int64_t>::max()}});
  CHECK_FALSE(session.should_stop());
}

TEST_CASE("D-6 a session that starts at or beyond the last step does none", "[hooks][stop_at_step]") {
  jumping_model at{.steps = 5};
  CHECK(runs_until_stop(at, {.last_step = 5}) == 0);
  jumping_model beyond{.steps = 9};
  CHECK(runs_until_stop(beyond, {.last_step = 5}) == 0);
}

TEST_CASE("the reason for the stop names the step", "[hooks][stop_at_step]") {
  counting_model model;
  sw::monitored_session session(model, sw::stop_at_step_hook{{.last_step = 2}});
  for ([[maybe_unused]] const auto& step : session.steps()) {}
  CHECK(session.stop_reason().cause == sw::stop_cause::last_step);
  CHECK(session.stop_reason().text == "step 2 is done");
}

TEST_CASE("stop_when calls its predicate before the first step and after each step, and stops with its text", "[hooks][stop_when]") {
  counting_model model;
  std::vector<std::int64_t> seen;
  sw::monitored_session session(model, sw::stop_when(
                                           [&](std::int64_t step) {
                                             seen.push_back(step);
                                             return step == 3;
                                           },
                                           "far enough"));
  CHECK(session.run_all().steps == 3);
  CHECK(seen == std::vector<std::int64_t>{0, 1, 2, 3});
  CHECK(session.stop_reason().cause == sw::stop_cause::criterion);
  CHECK(session.stop_reason().text == "far enough");
  counting_model done{.count = 5};
  sw::monitored_session again(done, sw::stop_when([&] { return done.count >= 5; }));
  CHECK(again.run_all().steps == 0);
  CHECK(again.stop_reason().text == "the criterion of stop_when is met");
}

TEST_CASE("stop_when sees what other hooks of the step have done, and its exceptions are failures of the run", "[hooks][stop_when]") {
  counting_model model;
  std::int64_t counted = 0;
  sw::monitored_session session(model, sw::stop_when([&] { return counted == 2; }), sw::every_n_steps(1, [&] { ++counted; }));
  CHECK(session.run_all().steps == 2);
  counting_model failing;
  sw::monitored_session other(failing, sw::stop_when([](std::int64_t step) { return step == 1 ? throw std::runtime_error("no") : false; }));
  CHECK_THROWS_WITH(other.run_all(), "no");
}

TEST_CASE("a NaN in the step that meets another criterion is the reason for the stop", "[hooks][stop_when][nan]") {
  counting_model model;
  const sw::test::log_capture log;
  const auto value = [](int step) { return step == 2 ? std::numeric_limits<double>::quiet_NaN() : 1.0; };
  const auto run = [&](auto criterion) {
    sw::monitored_session session(model, std::move(criterion), sw::nan_tensor_hook{{.fail_on_nan_loss = false}, value});
    session.run_all();
    return session.stop_reason().cause;
  };
  CHECK(run(sw::stop_when([](std::int64_t step) { return step == 2; })) == sw::stop_cause::nan);
}
