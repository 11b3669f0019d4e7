// SPDX-License-Identifier: Apache-2.0
//
// Tests of recovery in a loop over a source, and of rollbacks requested by hooks: the source is rewound together with
// the state.
#include "support/catch.hpp"
#include "support/log_capture.hpp"
#include "support/recording_hook.hpp"
#include "support/recovery_rig.hpp"
#include "support/temporary_directory.hpp"

#include <stepwell/base/error.hpp>
#include <stepwell/training/monitored_training_session.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sw = stepwell;
using namespace sw::test;
using numbers = std::vector<std::int64_t>;

namespace {

/// A source that is not seekable.
struct blind_source {
  std::int64_t next = 1;

  const std::int64_t* peek() { return &next; }
  void advance() { ++next; }
};

/// A model whose step is two batches. Its fourth run fails.
struct accumulating_model {
  std::int64_t steps = 0;
  std::int64_t runs = 0;
  std::int64_t sum = 0;

  void step(const std::int64_t& batch) {
    if (batch == 4) { throw sw::unavailable_error("once"); }
    sum += batch;
    if (++runs % 2 == 0) { ++steps; }
  }
  std::int64_t& global_step() { return steps; }
  sw::variable_list variables() { return sw::variables({{"runs", runs}, {"sum", sum}}); }
};

/// A seekable source that fails once in the function `fails_at`.
struct failing_source : counting_source {
  std::string fails_at;
  std::int64_t at = 0;

  const std::int64_t* peek() { return trip("peek"), counting_source::peek(); }
  void advance() { trip("advance"), counting_source::advance(); }
  void seek(std::uint64_t position) { trip("seek"), counting_source::seek(position); }

  void trip(const std::string& here) {
    if (here != fails_at || (here != "seek" && next != at)) { return; }
    fails_at.clear();
    throw sw::unavailable_error("the source cannot " + here);
  }
};

/// A hook that requests a rollback at batch `at`, the first `times` times.
struct rollback_hook {
  std::int64_t at;
  sw::rollback_request asked;
  int times = 1;

  auto before_run(auto&) { return sw::fetch(&adding_model::result::batch); }
  void after_run(auto& context, const auto& values) {
    if (values.value() != at || times-- <= 0) { return; }
    context.reject_state("batch " + std::to_string(at) + " is bad");
    context.request_rollback(asked);
  }
};

/// A hook that requests to skip the batch of a step, `times` times.
struct picky_hook {
  std::int64_t step;
  int times;

  void after_run(auto& context, const auto&) {
    if (context.global_step() == step && times-- > 0) { context.request_rollback({.why = "nothing is good enough", .skip_batch = true}); }
  }
};

/// The values that a loop received until step `last`.
struct travelled {
  numbers batches, steps;
  std::vector<int> attempts;
  std::vector<std::optional<std::int64_t>> from;
};
travelled travel(auto& session, auto& source, std::int64_t last) {
  travelled seen;
  for (const auto& step : session.steps(source)) {
    seen.batches.push_back(step.value.batch);
    seen.steps.push_back(step.global_step);
    seen.attempts.push_back(step.attempt);
    seen.from.push_back(step.rolled_back_from);
    if (step.global_step == last) { break; }
  }
  return seen;
}
const std::optional<std::int64_t> nothing;

}  // namespace

TEST_CASE("a source that fails after a step loses no step, even if it says that it is at its end", "[session][recovery]") {
  struct ends_late : counting_source {
    void advance() { throw sw::out_of_range_error("this should have been said by peek"); }
  };
  adding_model model;
  sw::monitored_session session(at_once(), model);
  ends_late source;
  CHECK_THROWS_AS(
      [&] {
        for ([[maybe_unused]] const auto& step : session.steps(source)) {}
      }(),
      sw::out_of_range_error);
  CHECK(session.global_step() == 1);
  CHECK(session.stop_reason().cause == sw::stop_cause::error);
}

TEST_CASE("REC-2 in a loop the batch is dropped, and the source goes back with the state", "[session][recovery]") {
  recovery_rig rig;
  rig.model.before = failing_batches{{4}};
  auto session = rig.start_saving_every(2);
  counting_source source;
  const auto seen = travel(session, source, 5);
  CHECK(seen.batches == numbers{1, 2, 3, 3, 4, 5});
  CHECK(seen.steps == numbers{1, 2, 3, 3, 4, 5});
  CHECK(seen.attempts == std::vector<int>{1, 1, 1, 2, 1, 1});
  CHECK(seen.from == std::vector{nothing, nothing, nothing, std::optional<std::int64_t>(3), nothing, nothing});
  CHECK(same(rig.model, model_after(5)));
}

TEST_CASE("REC-9 without a checkpoint a source returns to its position at its first use", "[session][recovery]") {
  adding_model model;
  model.before = failing_batches{{13}};
  sw::monitored_session session(at_once(), model);
  counting_source source{.next = 11};
  const auto seen = travel(session, source, 4);
  CHECK(seen.batches == numbers{11, 12, 11, 12, 13, 14});
  CHECK(seen.from[2] == 2);
}

TEST_CASE("a source that came into use after the restored checkpoint goes to where it stood then", "[session][recovery]") {
  recovery_rig rig;
  rig.model.before = failing_batches{{102}};
  auto session = rig.start_saving_every(3);
  run_until(session, 3);
  counting_source source{.next = 101};
  const auto seen = travel(session, source, 5);
  CHECK(seen.batches == numbers{101, 101, 102});
  CHECK(seen.steps == numbers{4, 4, 5});
}

TEST_CASE("REC-10 a loop that loses no step repeats only the batch that failed", "[session][recovery]") {
  recovery_rig rig;
  rig.model.before = failing_batches{{3, 3}};
  auto session = rig.start_saving_every(1);
  const bool is_seekable = GENERATE(true, false);
  travelled seen;
  if (is_seekable) {
    counting_source source;
    seen = travel(session, source, 4);
  } else {
    blind_source source;
    seen = travel(session, source, 4);
  }
  CHECK(seen.batches == numbers{1, 2, 3, 4});
  CHECK(seen.attempts == std::vector<int>{1, 1, 3, 1});
  CHECK(seen.from == std::vector(4, nothing));
}

TEST_CASE("batches of runs that do not change the model's own step are lost for a source that cannot seek, too", "[session][recovery]") {
  const sw::test::log_capture log;
  accumulating_model model;
  const temporary_directory directory;
  auto session = sw::monitored_training_session(
      model, {.checkpoint_dir = directory.path(), .saves = {.save_steps = 1}, .retry = {.initial_backoff = 0}});
  blind_source source;
  CHECK_THROWS_WITH(
      [&] {
        for ([[maybe_unused]] const auto& step : session.steps(source)) {}
      }(),
      ContainsSubstring("cannot rewind") && ContainsSubstring("from step 1 to 1"));
  CHECK(model.sum == 1 + 2);
}

TEST_CASE("a source that cannot seek is an error after a step was lost, or continues where it is with on_unseekable = skip",
          "[session][recovery]") {
  sw::test::log_capture log;
  recovery_rig rig;
  rig.model.before = failing_batches{{4}};
  const bool skips = GENERATE(false, true);
  if (skips) { rig.setup.options.on_unseekable = sw::unseekable_policy::skip; }
  auto session = rig.start_saving_every(2);
  blind_source source;
  travelled seen;
  const auto loop = [&] { seen = travel(session, source, 5); };
  if (!skips) {
    CHECK_THROWS_WITH(loop(),
                      ContainsSubstring("cannot rewind") && ContainsSubstring("from step 3 to 2") && ContainsSubstring("on_unseekable"));
    CHECK(session.global_step() == 2);  // the state is restored nevertheless
    CHECK(same(rig.model, model_after(2)));
    CHECK_FALSE(session.should_stop());
    loop();
    CHECK(seen.batches == numbers{4, 5, 6});
  } else {
    loop();
    CHECK(seen.batches == numbers{1, 2, 3, 4, 5, 6});
    CHECK(seen.steps == numbers{1, 2, 3, 3, 4, 5});
    CHECK(seen.from[3] == 3);
    CHECK(log.contains(sw::log_level::warning, "it continues from its current position"));
  }
}

TEST_CASE("a source may fail in a way that may pass, wherever it is asked", "[session][recovery]") {
  const auto where = GENERATE(std::string("peek"), std::string("advance"), std::string("seek"));
  recovery_rig rig;
  if (where == "seek") { rig.model.before = failing_batches{{3}}; }  // only a recovery calls seek
  auto session = rig.start_saving_every(2);
  failing_source source;
  source.fails_at = where;
  source.at = 3;
  const auto seen = travel(session, source, 4);
  CHECK(same(rig.model, model_after(4)));
  CHECK(source.next == 5);
  CHECK(session.metrics().recoveries == (where == "seek" ? 2 : 1));
  CHECK(seen.steps == numbers{1, 2, 3, 4});
}

TEST_CASE("a single run that recovers inside a loop takes the source of the loop back, too", "[session][recovery]") {
  recovery_rig rig;
  rig.model.before = failing_batches{{1000}};
  auto session = rig.start_saving_every(2);
  counting_source source;
  numbers batches;
  for (const auto& step : session.steps(source)) {
    batches.push_back(step.value.batch);
    if (step.value.batch == 3 && batches.size() == 3) {
      session.run(std::int64_t{1000});  // fails first: the state goes back to step 2
      CHECK(session.global_step() == 3);
      CHECK(rig.model.sum == 1003);
    }
    if (batches.size() == 5) { break; }
  }
  CHECK(batches == numbers{1, 2, 3, 3, 4});
  CHECK(rig.model.sum == 1010);
  session.close();
  CHECK(sw::checkpoint_reader(rig.directory.path() + "/model.ckpt-5").read("stepwell/source/default/position").as<std::int64_t>()[0] == 4);
}

TEST_CASE("a recovery in an inner loop takes the source of the outer one back, too", "[session][recovery]") {
  struct named_source : counting_source {
    std::string called;
    const std::string& name() const { return called; }
  };
  recovery_rig rig;
  rig.model.before = failing_batches{{101}};
  auto session = rig.start_saving_every(2);
  named_source outer{{}, "outer"};
  named_source inner{{.next = 101}, "inner"};
  numbers outside, inside;
  for (const auto& step : session.steps(outer)) {
    outside.push_back(step.value.batch);
    if (step.global_step == 3) {
      for (const auto& deeper : session.steps(inner)) {
        inside.push_back(deeper.value.batch);
        if (deeper.value.batch == 103) { break; }
      }
    }
    if (outside.size() == 5) { break; }
  }
  CHECK(inside == numbers{101, 102, 103});
  CHECK(outside == numbers{1, 2, 3, 3, 4});
}

TEST_CASE("if a hook requests a rollback, the state and the source are restored, then the answer is called", "[session][rollback]") {
  recovery_rig rig;
  sw::test::log_capture log;
  int answers = 0;
  float sum_then = 0;
  auto session = rig.start_saving_every(2, rollback_hook{.at = 4, .asked = {.why = "it tastes bad", .answer = [&] {
                                                                              ++answers;
                                                                              sum_then = rig.model.sum;
                                                                            }}});
  counting_source source;
  const auto seen = travel(session, source, 5);
  CHECK(seen.batches == numbers{1, 2, 3, 3, 4, 5});
  CHECK(answers == 1);
  CHECK(sum_then == 3);  // the sum of step 2: the answer is called after the restore
  CHECK(seen.from[3] == 4);
  CHECK(session.metrics().rollbacks == 1);
  CHECK(session.metrics().recoveries == 1);
  CHECK(log.contains(sw::log_level::warning, "rolling back: it tastes bad"));
  CHECK(same(rig.model, model_after(5)));
  session.close();
  CHECK(rig.steps() == "0 2 4 5");  // the rejected state of step 4 was not saved, the repeated one was
}

TEST_CASE("if a hook requests to leave a batch out, the loop continues without it, also later", "[session][rollback]") {
  sw::test::log_capture log;
  recovery_rig rig;
  rig.model.before = failing_batches{{5}};  // a later recovery skips the batch again
  auto session = rig.start_saving_every(2, rollback_hook{.at = 3, .asked = {.why = "bad", .skip_batch = true}, .times = 9});
  counting_source source;
  const auto seen = travel(session, source, 5);
  CHECK(seen.batches == numbers{1, 2, 4, 4, 5, 6});
  CHECK(rig.model.sum == 18);
  CHECK(session.metrics().rollbacks == 1);
  CHECK(session.metrics().recoveries == 2);
  CHECK(session.hook<rollback_hook>().times == 8);
}

TEST_CASE("a batch after the other is left out, as often as the policy has attempts", "[session][rollback]") {
  sw::test::log_capture log;
  recovery_rig rig;
  std::vector<std::int64_t> tried;
  rig.model.before = failing_batches{{}, &tried};
  rig.setup.options.retry.max_attempts = 3;
  auto session = rig.start_saving_every(1, picky_hook{3, 99});
  counting_source source;
  CHECK_THROWS_WITH(travel(session, source, 9), ContainsSubstring("nothing is good enough"));
  CHECK(tried == numbers{1, 2, 3, 4, 5, 6});
  CHECK(session.should_stop());
}

TEST_CASE("if there is no batch to leave out, the failure is thrown after the state is restored", "[session][rollback]") {
  recovery_rig rig;
  sw::test::log_capture log;
  auto session = rig.start_saving_every(1, rollback_hook{.at = 3, .asked = {.why = "bad", .skip_batch = true}});
  run_until(session, 2);
  SECTION("in a single run") { CHECK_THROWS_WITH(session.run(std::int64_t{3}), ContainsSubstring("rolling back: bad")); }
  SECTION("in a loop over a source that cannot seek") {
    blind_source source{.next = 3};
    CHECK_THROWS_WITH(travel(session, source, 9), ContainsSubstring("rolling back: bad"));
  }
  CHECK(session.global_step() == 2);
  CHECK(same(rig.model, model_after(2)));
  CHECK_FALSE(session.should_stop());
  session.run(std::int64_t{3});
  CHECK(same(rig.model, model_after(3)));
}

TEST_CASE("without a source, a batch cannot be left out", "[session][rollback]") {
  counting_model model;
  sw::monitored_session session(at_once(), model, picky_hook{2, 1});
  const auto loop = [&] {
    for (const auto& step : session.steps()) {
      if (step.global_step == 3) { break; }
    }
  };
  CHECK_THROWS_AS(loop(), sw::aborted_error);
  CHECK(model.count == 0);
  loop();
  CHECK(model.count == 3);
}

TEST_CASE("a single run asked to roll back is repeated, after the answer", "[session][rollback]") {
  recovery_rig rig;
  auto session = rig.start_saving_every(1, rollback_hook{.at = 3, .asked = {.why = "bad", .answer = [&] { rig.model.weights[0] = -1; }}});
  run_until(session, 3);
  CHECK(session.global_step() == 3);
  CHECK(rig.model.sum == 6);
  CHECK(rig.model.weights[0] == 0);
}

TEST_CASE("an answer that fails is a failure of the recovery; one that may pass is called again", "[session][rollback]") {
  recovery_rig rig;
  sw::test::log_capture log;
  const bool may_pass = GENERATE(true, false);
  int answers = 0;
  const auto answer = [&] {
    if (++answers > 1) { return; }
    if (may_pass) { throw sw::unavailable_error("not now"); }
    throw sw::unknown_error("never");
  };
  auto session = rig.start_saving_every(1, rollback_hook{.at = 3, .asked = {.why = "bad", .answer = answer}});
  run_until(session, 2);
  if (may_pass) {
    session.run(std::int64_t{3});
    CHECK(session.metrics().recoveries == 2);
    CHECK(session.metrics().rollbacks == 1);
  } else {
    CHECK_THROWS_WITH(session.run(std::int64_t{3}), ContainsSubstring("never"));
    CHECK(session.should_stop());
    session.close();
    CHECK(rig.steps() == "0 1 2");  // a state that needs recovery is not saved
  }
}

TEST_CASE("a session that does not recover throws what a hook asked to roll back for", "[session][rollback]") {
  recovery_rig rig;
  sw::test::log_capture log;
  rig.setup.options.retry.max_attempts = 0;
  auto session = rig.start_saving_every(1, rollback_hook{.at = 2, .asked = {.why = "bad"}});
  session.run(std::int64_t{1});
  CHECK_THROWS_WITH(session.run(std::int64_t{2}), ContainsSubstring("rolling back: bad"));
  CHECK(session.metrics().recoveries == 0);
  session.close();
  CHECK(rig.steps() == "0 1");  // the rejected state is not saved
}
