// SPDX-License-Identifier: Apache-2.0
//
// Tests of recovery from a transient failure: the session is closed and created again, and the call is repeated
// (contract REC).
#include "support/catch.hpp"
#include "support/log_capture.hpp"
#include "support/recording_hook.hpp"
#include "support/recovery_rig.hpp"

#include <stepwell/threads/queue_runner.hpp>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <set>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace sw = stepwell;
using namespace sw::test;
using story_type = std::vector<std::string>;

namespace {

/// A hook that throws at the given point, once.
struct tripping_hook {
  std::string point;
  int times = 1;

  void begin() { trip("begin"); }
  void after_create_session(auto&, auto&) { trip("after_create_session"); }
  void before_run(auto&) { trip("before_run"); }
  void after_run(auto&, const auto&) { trip("after_run"); }
  void end(auto&) { trip("end"); }

private:
  void trip(const std::string& here) {
    if (here == point && times-- > 0) { throw sw::unavailable_error(here + " cannot be reached"); }
  }
};

/// A scaffold that initialises a raw session as chief. It records its calls and throws once in the call `fails_at`.
struct telling_scaffold {
  story_type& story;
  std::string fails_at = "";

  void tell(const std::string& what) {
    story.push_back(what);
    if (std::exchange(fails_at, what == fails_at ? "" : fails_at) == what) { throw sw::aborted_error(what + " was given up"); }
  }
  std::shared_ptr<sw::scaffold<adding_model>> make() {
    return std::make_shared<sw::scaffold<adding_model>>(sw::scaffold_options<adding_model>{
        .init_op = [this](adding_model& model) { model = adding_model{.before = model.before}, tell("init_op"); },
        .init_fn = [this](const auto&, adding_model& model) { model.sum += 100, tell("init_fn"); },
        .ready_op = [this](const adding_model&) { return tell("ready_op"), std::vector<std::string>{}; },
        .local_init_op = [this](adding_model&) { tell("local_init_op"); }});
  }
};

/// Hooks that count runs. The count of the second one is saved state.
struct plain_counter {
  int runs = 0;
  void after_run(auto&, const auto&) { ++runs; }
};
struct saved_counter : plain_counter {
  static constexpr auto state_name = "counter";
  sw::variable_list variables() { return sw::variables({{"runs", runs}}); }
};

/// Makes the runs of these batches fail once each.
void fail_at(adding_model& model, std::multiset<std::int64_t> batches, std::vector<std::int64_t>* seen = nullptr) {
  model.before = failing_batches{std::move(batches), seen};
}

}  // namespace

TEST_CASE("REC-1 exactly aborted_error and unavailable_error are recovered from", "[session][recovery]") {
  const auto recoveries_after = [](auto failure) {
    adding_model model;
    model.before = [failure, times = 1](std::int64_t) mutable {
      if (times-- > 0) { throw failure; }
    };
    sw::monitored_session session(at_once(), model);
    bool is_thrown = false;
    try {
      session.run(std::int64_t{1});
    } catch (...) { is_thrown = true; }
    CHECK(is_thrown == (session.metrics().recoveries == 0));
    CHECK(model.sum == (is_thrown ? 0 : 1));
    return session.metrics().recoveries;
  };
  CHECK(recoveries_after(sw::aborted_error("x")) == 1);
  CHECK(recoveries_after(sw::unavailable_error("x")) == 1);
  CHECK(recoveries_after(sw::out_of_range_error("x")) == 0);
  CHECK(recoveries_after(sw::cancelled_error("x")) == 0);
  CHECK(recoveries_after(sw::deadline_exceeded_error("x")) == 0);
  CHECK(recoveries_after(sw::resource_exhausted_error("x")) == 0);
  CHECK(recoveries_after(sw::failed_precondition_error("x")) == 0);
  CHECK(recoveries_after(sw::data_loss_error("x")) == 0);
  CHECK(recoveries_after(sw::nan_loss_error("x")) == 0);
  CHECK(recoveries_after(sw::unknown_error("x")) == 0);
  CHECK(recoveries_after(sw::stop_iteration("x")) == 0);
  CHECK(recoveries_after(std::runtime_error("x")) == 0);
  CHECK(recoveries_after(42) == 0);
}

TEST_CASE("REC-2 the whole call is repeated with the same arguments, hooks and all", "[session][recovery]") {
  sw::test::log_capture log;
  adding_model model;
  story_type story;
  std::vector<std::int64_t> seen;
  fail_at(model, {7, 7}, &seen);
  sw::monitored_session session(at_once(), model, recording_hook{&story}, attempts_hook{});
  CHECK(session.run(std::int64_t{7}).batch == 7);
  CHECK(seen == std::vector<std::int64_t>{7, 7, 7});
  CHECK(story == story_type{"begin", "create 0", "before 0", "error", "create 0", "before 0", "error", "create 0", "before 0", "after 1"});
  CHECK(session.hook<attempts_hook>().attempts == std::vector<int>{1, 2, 3});
  CHECK(session.run(std::int64_t{8}).loss == 15);
  CHECK(session.hook<attempts_hook>().attempts.back() == 1);
}

TEST_CASE("REC-2 a fetch is repeated with its run", "[session][recovery]") {
  adding_model model;
  fail_at(model, {3});
  sw::monitored_session session(at_once(), model);
  const auto [loss, weights] = session.run(sw::fetch(&adding_model::result::loss, &adding_model::weights), std::int64_t{3});
  CHECK(loss == 3);
  CHECK(weights == std::vector<float>{2, 3, 4});
}

TEST_CASE("REC-2 arguments that a step uses up are given once, and their failure is the caller's", "[session][recovery]") {
  struct eating_model {
    int eaten = 0;
    int failures = 1;
    void step(std::unique_ptr<int> batch) {
      if (failures-- > 0) { throw sw::aborted_error("choked"); }
      eaten += *batch;
    }
    sw::variable_list variables() { return sw::variables({{"eaten", eaten}}); }
  };
  eating_model model;
  sw::monitored_session session(at_once(), model);
  CHECK_THROWS_AS(session.run(std::make_unique<int>(5)), sw::aborted_error);
  CHECK(session.metrics().recoveries == 0);
  CHECK_NOTHROW(session.run(std::make_unique<int>(6)));
  CHECK(model.eaten == 6);
}

TEST_CASE("REC-3 transient failures of hooks are recovered from: before and after a run, and at a creation", "[session][recovery]") {
  const auto point = GENERATE(std::string("before_run"), std::string("after_run"), std::string("after_create_session"));
  sw::test::log_capture log;
  adding_model model;
  story_type story;
  sw::monitored_session session(at_once(), model, recording_hook{&story}, tripping_hook{point});
  CHECK(session.run(std::int64_t{5}).loss == 5);
  CHECK(session.global_step() == 1);
  CHECK(session.metrics().recoveries == 1);
  CHECK(std::ranges::count(story, "begin") == 1);  // not called again (contract REC-7)
  CHECK(std::ranges::count(story, "create 0") == 2);
  session.close();
  CHECK(std::ranges::count(story, "end 1") == 1);
}

TEST_CASE("REC-3 exceptions of begin and end are not recovered from", "[session][recovery]") {
  sw::test::log_capture log;
  adding_model model;
  CHECK_THROWS_AS(sw::monitored_session(at_once(), model, tripping_hook{"begin"}), sw::unavailable_error);
  sw::monitored_session session(at_once(), model, tripping_hook{"end"});
  CHECK_THROWS_AS(session.close(), sw::unavailable_error);
  CHECK(session.metrics().recoveries == 0);
}

TEST_CASE("REC-3 REC-5 a creation that fails in a way that may pass is tried again, from its beginning", "[session][recovery]") {
  const auto stage = GENERATE(std::string("init_op"), std::string("init_fn"), std::string("local_init_op"), std::string("ready_op"));
  sw::test::log_capture log;
  adding_model model;
  story_type story;
  telling_scaffold scaffold{story, stage};
  sw::monitored_session session(at_once(), sw::chief_session_creator(model, scaffold.make()));
  CHECK(model.sum == 100);  // initialised once; the failed attempt left no trace
  CHECK(session.run(std::int64_t{1}).loss == 101);
  CHECK(session.metrics().recoveries == 1);
  CHECK(session.metrics().creations == 1);
  CHECK(std::ranges::count(story, "init_op") == 2);
}

TEST_CASE("REC-3 a first creation that is tried again begins with what the model held, and what it tried is undone",
          "[session][recovery]") {
  adding_model model;
  model.sum = 7;
  int tries = 0;
  const auto adds_to_it =
      std::make_shared<sw::scaffold<adding_model>>(sw::scaffold_options<adding_model>{.init_fn = [&](const auto&, adding_model& subject) {
        subject.sum += 1;
        if (++tries < 3) { throw sw::unavailable_error("half done"); }
      }});
  sw::monitored_session session(at_once(), sw::chief_session_creator(model, adds_to_it));
  CHECK(tries == 3);
  CHECK(model.sum == 8);
}

TEST_CASE("REC-3 REC-5 a first creation that is tried again starts from the checkpoint all the same", "[session][recovery]") {
  recovery_rig rig;
  { rig.start_saving_every(1).run(std::int64_t{5}); }
  const auto where = GENERATE(std::string("find"), std::string("local_init_op"), std::string("after_create_session"));
  sw::test::log_capture log;
  adding_model again;
  story_type story;
  telling_scaffold scaffold{story, where};
  auto setup = rig.setup;
  setup.find_checkpoint = [&, fails = where == "find"]() mutable {
    if (std::exchange(fails, false)) { throw sw::unavailable_error("the directory is not mounted yet"); }
    return sw::latest_whole_checkpoint(rig.directory.path());
  };
  sw::monitored_session session(setup, sw::chief_session_creator(again, scaffold.make()), attempts_hook{}, tripping_hook{where});
  CHECK(session.global_step() == 1);
  CHECK(again.sum == 5);
  CHECK(session.restored_from());
  CHECK(session.metrics().recoveries == 1);
  CHECK(session.hook<attempts_hook>().failures.size() == (where == "after_create_session" ? 1U : 0U));
  CHECK(std::ranges::count(story, "init_op") == 0);
}

TEST_CASE("REC-6 REC-7 a recovery repeats some of the work of the first creation, and not the rest", "[session][recovery]") {
  sw::test::log_capture log;
  adding_model model;
  story_type story;
  fail_at(model, {2});
  telling_scaffold scaffold{story};
  const auto finalized = scaffold.make();
  std::atomic<int> enqueued = 0;
  struct bottomless {
    std::string name() const { return "well"; }
    void close(bool) {}
  } queue;
  const auto fill = [&](const std::stop_token&) {
    ++enqueued;
    enqueued.notify_all();
    throw sw::out_of_range_error("once a session");
  };
  const auto runner = std::make_shared<sw::queue_runner>(queue, std::vector{sw::enqueue_op{"fill", fill}});
  auto options = at_once();
  options.queue_runners = {runner};
  sw::monitored_session session(options, sw::chief_session_creator(model, finalized), recording_hook{&story, "a "},
                                recording_hook{&story, "b "}, coordinator_hook{});
  const story_type creation = {"init_op", "init_fn", "local_init_op", "ready_op", "a create 0", "b create 0"};
  auto expected = creation;
  expected.insert(expected.begin(), {"a begin", "b begin"});
  CHECK(story == expected);
  story.clear();
  enqueued.wait(0);
  session.run(std::int64_t{2});
  expected = {"a before 0", "b before 0", "a error", "b error"};
  expected.insert(expected.end(), creation.begin(), creation.end());
  expected.insert(expected.end(), {"a before 0", "b before 0", "a after 1", "b after 1"});
  CHECK(story == expected);
  CHECK(session.hook<coordinator_hook>().creations == 2);
  CHECK_FALSE(session.hook<coordinator_hook>().threads->should_stop());  // a new coordinator
  CHECK_FALSE(session.should_stop());
  enqueued.wait(1);
  session.close();
  CHECK(enqueued == 2);  // the threads of the runner were started and joined for each session
}

TEST_CASE("REC-7 a hook's own counters go on, unless they are its saved state", "[session][recovery]") {
  adding_model model;
  fail_at(model, {3});
  sw::monitored_session session(at_once(), model, plain_counter{}, saved_counter{});
  for (std::int64_t batch = 1; batch <= 3; ++batch) { session.run(batch); }
  CHECK(session.hook<plain_counter>().runs == 3);
  CHECK(session.hook<saved_counter>().runs == 1);  // restored to the state of step 0, then one run
}

TEST_CASE("REC-9 without a checkpoint the session returns to the initial state of the model", "[session][recovery]") {
  sw::test::log_capture log;
  adding_model model;
  model.sum = 40;
  fail_at(model, {3});
  sw::monitored_session session(at_once(), model);
  for (std::int64_t batch = 1; batch <= 3; ++batch) { session.run(batch); }
  CHECK(session.global_step() == 1);  // a rollback to step 0, then one step
  CHECK(model.sum == 43);
  CHECK(model.weights == std::vector<float>{2, 3, 4});
  CHECK(log.contains(sw::log_level::info, "no checkpoint found"));
}

TEST_CASE("REC-9 without a checkpoint a scaffold initialises anew", "[session][recovery]") {
  adding_model model;
  story_type story;
  telling_scaffold scaffold{story};
  fail_at(model, {3});
  sw::monitored_session session(at_once(), sw::chief_session_creator(model, scaffold.make(), {.keep_initial_state = false}));
  for (std::int64_t batch = 1; batch <= 3; ++batch) { session.run(batch); }
  CHECK(session.global_step() == 1);
  CHECK(model.sum == 103);
}

TEST_CASE("REC-9 without a kept state and a function that initialises, the error of the recovery names the options to give",
          "[session][recovery]") {
  sw::test::log_capture log;
  adding_model model;
  fail_at(model, {1});
  auto options = at_once();
  options.keep_initial_state = false;
  sw::monitored_session session(options, model);
  CHECK_THROWS_WITH(session.run(std::int64_t{1}),
                    ContainsSubstring("Model is not initialized and no init_op or init_fn or local_init_op was given"));
  CHECK(session.should_stop());
  CHECK(log.contains(sw::log_level::warning, "batch 1 is lost on the way"));  // the reason for the attempted recovery
}

TEST_CASE("REC-10 with a checkpoint at every step the same call does the step it was called for", "[session][recovery]") {
  recovery_rig rig;
  fail_at(rig.model, {3});
  auto session = rig.start_saving_every(1);
  run_until(session, 3);
  CHECK(session.global_step() == 3);
  CHECK(same(rig.model, model_after(3)));
  CHECK(session.restored_from() == rig.directory.path() + "/model.ckpt-2");
  session.close();
  CHECK(newest_in(rig.directory.path()).step == 3);
}

TEST_CASE("REC-11 hooks see repeated steps, and the state has them once", "[session][recovery]") {
  sw::test::log_capture log;
  adding_model model;
  story_type story;
  sw::monitored_session session(at_once(), model, recording_hook{&story, "a "}, tripping_hook{"after_run"}, recording_hook{&story, "b "});
  story.clear();
  session.run(std::int64_t{5});
  CHECK(story == story_type{"a before 0", "b before 0", "a after 1", "a error", "b error", "a create 0", "b create 0",  //
                            "a before 0", "b before 0", "a after 1", "b after 1"});
  CHECK(model.sum == 5);  // the step of the first attempt is undone
  CHECK(session.global_step() == 1);
}

TEST_CASE("recovery can be switched off: failures are the caller's, and the session stays usable", "[session][recovery]") {
  adding_model model;
  fail_at(model, {2});
  auto options = at_once();
  options.retry.max_attempts = 0;
  sw::monitored_session session(options, model);
  session.run(std::int64_t{1});
  CHECK_THROWS_AS(session.run(std::int64_t{2}), sw::aborted_error);
  CHECK_FALSE(session.should_stop());
  session.run(std::int64_t{2});
  CHECK(model.sum == 3);
  CHECK(session.metrics().recoveries == 0);
  CHECK(session.metrics().creations == 1);
}
