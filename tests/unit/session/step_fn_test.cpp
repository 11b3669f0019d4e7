// SPDX-License-Identifier: Apache-2.0
//
// Tests of run_step_fn: runs with and without hooks that form one step (contract STEP).
#include "support/catch.hpp"
#include "support/failing_model.hpp"
#include "support/toy_model.hpp"

#include <stepwell/model/model_session.hpp>
#include <stepwell/session/monitored_session.hpp>
#include <stepwell/session/training_session.hpp>

#include <tuple>
#include <utility>
#include <vector>

namespace sw = stepwell;
using sw::test::adding_model;
using sw::test::fails_once;

namespace {

struct counting_hook {
  int* before;
  int* after;
  void before_run(auto&) { ++*before; }
  void after_run(auto&, const auto&) { ++*after; }
};

struct aborting_hook {
  fails_once* fault;
  void before_run(auto&) { fault->check(); }
};

struct stopping_hook {
  void after_run(auto& context, const auto&) { context.request_stop(); }
};

sw::training_options at_once() { return {.retry = {.initial_backoff = 0}}; }

}  // namespace

TEST_CASE("STEP-1 STEP-2 STEP-3 a step function gets a context, and its result is returned", "[session][step_fn]") {
  adding_model model;
  int before = 0;
  int after = 0;
  sw::monitored_session session(model, counting_hook{&before, &after});
  const auto sum = session.run_step_fn([](auto& context) {
    const auto first = context.run_with_hooks(1).loss;
    return first + context.run_with_hooks(2).loss;
  });
  CHECK(sum == 1 + 3);
  CHECK(before == 2);
  CHECK(after == 2);
}

TEST_CASE("STEP-4 runs on the raw session of the context trigger no hook", "[session][step_fn]") {
  adding_model model;
  int before = 0;
  int after = 0;
  sw::monitored_session session(model, counting_hook{&before, &after});
  session.run_step_fn([](auto& context) { context.session().run(5); });
  CHECK(before == 0);
  CHECK(model.sum == 5);
  CHECK(session.global_step() == 1);
}

TEST_CASE("STEP-5 request_stop leaves the step function by stop_iteration; in a with-block that is a clean end", "[session][step_fn]") {
  adding_model model;
  int before = 0;
  int after = 0;
  sw::monitored_session session(model, counting_hook{&before, &after});
  const auto stopping = [](auto& context) { context.request_stop(); };
  CHECK_THROWS_AS(session.run_step_fn(stopping), sw::stop_iteration);
  CHECK_FALSE(session.should_stop());
  CHECK(before == 0);
  sw::with(session, [&](auto& inside) { inside.run_step_fn(stopping); });
  CHECK(session.should_stop());
  CHECK_THROWS_AS(session.run_step_fn(stopping), sw::failed_precondition_error);
}

TEST_CASE("STEP-6 REC-3 after a failure that may pass the whole step function is repeated, raw runs and all", "[session][step_fn]") {
  adding_model model;
  sw::monitored_session session(at_once(), model);
  fails_once fault;
  int calls = 0;
  session.run_step_fn([&](auto& context) {
    ++calls;
    context.session().run(3);
    fault.check();
    context.run_with_hooks(4);
  });
  CHECK(calls == 2);
  CHECK(model.sum == 3 + 4);  // restored to the start in between, because there is no checkpoint
  CHECK(session.metrics().recoveries == 1);
}

TEST_CASE("STEP-7 a run with hooks that fails repeats the step function, not itself", "[session][step_fn]") {
  adding_model model;
  fails_once fault;
  sw::monitored_session session(at_once(), model, aborting_hook{&fault});
  int calls = 0;
  session.run_step_fn([&](auto& context) {
    ++calls;
    context.run_with_hooks(1);
  });
  CHECK(calls == 2);
  CHECK(session.global_step() == 1);
}

TEST_CASE("STEP-8 D-11 a repeated step function gets the current raw session", "[session][step_fn]") {
  struct numbered_session : sw::model_session<adding_model> {
    int number;
    numbered_session(adding_model& model, int n) : sw::model_session<adding_model>(model), number(n) {}
  };
  struct numbering_creator {
    adding_model* model;
    int made = 0;
    numbered_session create_session() { return {*model, ++made}; }
  };
  adding_model model;
  sw::monitored_session session(at_once(), numbering_creator{&model});
  fails_once fault;
  std::vector<int> seen;
  session.run_step_fn([&](auto& context) {
    seen.push_back(context.session().number);
    fault.check();
  });
  CHECK(seen == std::vector<int>{1, 2});
}

TEST_CASE("STEP-9 a singular session does not repeat it", "[session][step_fn]") {
  adding_model model;
  sw::singular_monitored_session session(model);
  fails_once fault;
  CHECK_THROWS_AS(session.run_step_fn([&](auto&) { fault.check(); }), sw::aborted_error);
  CHECK(session.run_step_fn([](auto& context) { return context.run_with_hooks(2).loss; }) == 2);
}

TEST_CASE("RUN-1 after a stop by a hook a step function is called, and only its runs with hooks are refused", "[session][step_fn]") {
  adding_model model;
  sw::monitored_session session(model, stopping_hook{});
  session.run(1);
  CHECK(session.run_step_fn([](auto& context) { return context.session().run(5).loss; }) == 6);
  CHECK_THROWS_WITH(session.run_step_fn([](auto& context) { context.run_with_hooks(7); }),
                    ContainsSubstring("Run called even after should_stop requested."));
  CHECK(model.sum == 6);
  session.close();
  bool is_called = false;
  CHECK_THROWS_AS(session.run_step_fn([&](auto&) { is_called = true; }), sw::failed_precondition_error);
  CHECK_FALSE(is_called);
}

TEST_CASE("REC-3 a step function after a stop by a hook is repeated after a recovery, too", "[session][step_fn]") {
  adding_model model;
  sw::monitored_session session(at_once(), model, stopping_hook{});
  session.run(1);
  int calls = 0;
  session.run_step_fn([&](auto&) {
    if (++calls == 1) { throw sw::aborted_error("once"); }
  });
  CHECK(calls == 2);
}
