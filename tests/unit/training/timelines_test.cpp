// SPDX-License-Identifier: Apache-2.0
//
// Tests of complete runs of monitored_training_session on a manual clock: the order of all calls, the files, the events
// (contract TL). Built-in hooks are called before or after the user's hooks, according to their phases (decision D-1).
#include "support/catch.hpp"
#include "support/log_capture.hpp"
#include "support/once_waiting.hpp"
#include "support/recording_hook.hpp"
#include "unit/hooks/event_reading.hpp"
#include "unit/training/training_rig.hpp"

#include <stepwell/session/training_session.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace sw = stepwell;
using namespace sw::test;
using namespace std::chrono_literals;
using sw::format::session_status;
using story_type = std::vector<std::string>;
using steps = std::vector<std::int64_t>;
using notes = std::vector<std::pair<std::int64_t, std::string>>;

namespace {

struct timeline {
  temporary_directory directory;
  std::shared_ptr<sw::manual_clock> clock = std::make_shared<sw::manual_clock>();
  story_type story;

  /// Returns options with a checkpoint every `save_steps` steps, the loss at every step, and default values otherwise.
  [[nodiscard]] adding_options options(std::int64_t save_steps) const {
    return {.checkpoint_dir = directory.path(),
            .saves = {.save_steps = save_steps, .saver = {.max_to_keep = sw::none, .sync = false}},
            .summaries = {.save_steps = 1},
            .clock = clock};
  }
  static auto losses() { return sw::summaries(sw::summary::scalar("loss", &adding_model::result::loss)); }
  [[nodiscard]] steps on_disk() const { return steps_on_disk(directory); }
  [[nodiscard]] std::string checkpoint(std::int64_t step) const { return directory.path() + "/model.ckpt-" + std::to_string(step); }
  [[nodiscard]] notes noted(session_status kind) const { return notes_in(directory.path(), kind); }
  [[nodiscard]] steps started() const {
    steps all;
    for (const auto& [step, path] : noted(session_status::start)) { all.push_back(step); }
    return all;
  }
  [[nodiscard]] steps saved() const {
    steps all;
    for (const auto& [step, path] : noted(session_status::checkpoint)) {
      CHECK(path == checkpoint(step));
      all.push_back(step);
    }
    return all;
  }

  /// Returns the losses as a viewer shows them: a START event removes earlier values at its step and above.
  [[nodiscard]] std::map<std::int64_t, std::vector<float>> curve() const {
    std::map<std::int64_t, std::vector<float>> shown;
    for (const auto& event : events_in(directory.path())) {
      const auto* note = std::get_if<sw::format::session_log>(&event.what);
      if (note != nullptr && note->status == session_status::start) { shown.erase(shown.lower_bound(event.step), shown.end()); }
      const auto* values = std::get_if<sw::format::summary>(&event.what);
      if (values == nullptr || values->values.front().tag != "loss") { continue; }
      shown[event.step].push_back(std::get<float>(values->values.front().value));
    }
    return shown;
  }
};

/// Returns the loss after each of the first `last` steps.
std::map<std::int64_t, std::vector<float>> true_curve(std::int64_t last) {
  std::map<std::int64_t, std::vector<float>> all;
  for (std::int64_t step = 1; step <= last; ++step) { all[step] = {static_cast<float>(step * (step + 1) / 2)}; }
  return all;
}

/// A hook that throws once, in `before_run` of a step.
struct aborting_hook {
  std::int64_t step;
  int times = 1;
  void before_run(auto& context) {
    if (context.global_step() + 1 == step && times-- > 0) { throw sw::aborted_error("the server restarts"); }
  }
};

template<class Session>
void settle(Session& session) {
  session.template hook<sw::checkpoint_saver_hook>().saver().drain();
}
void run_to(auto& session, std::int64_t last) {
  while (session.global_step() < last) { session.run(session.global_step() + 1); }
}

}  // namespace

TEST_CASE("TL-1 a fresh chief: a save at the start, at each due step, none twice; START at the first step", "[training][timeline]") {
  timeline line;
  adding_model model;
  auto session = sw::monitored_training_session(model, line.options(2), line.losses(), recording_hook{&line.story});
  settle(session);
  CHECK(line.story == story_type{"begin", "create 0"});
  CHECK(line.on_disk() == steps{0});
  CHECK(event_files_in(line.directory.path()) == 1);
  CHECK_FALSE(session.restored_from());

  session.run(std::int64_t{1});
  settle(session);
  CHECK(line.story == story_type{"begin", "create 0", "before 0", "after 1"});
  CHECK(line.on_disk() == steps{0});

  session.run(std::int64_t{2});
  settle(session);
  CHECK(line.on_disk() == steps{0, 2});

  session.close();
  CHECK(line.story == story_type{"begin", "create 0", "before 0", "after 1", "before 1", "after 2", "end 2"});
  CHECK(line.on_disk() == steps{0, 2});
  CHECK(line.saved() == steps{0, 2});  // the last step is not saved twice
  CHECK(line.started() == steps{1});
  CHECK(line.curve() == true_curve(2));
  std::vector<std::pair<session_status, std::int64_t>> logged;
  for (const auto& event : events_in(line.directory.path())) {
    if (const auto* note = std::get_if<sw::format::session_log>(&event.what)) { logged.emplace_back(note->status, event.step); }
  }
  REQUIRE(logged.size() == 3);  // as in TensorFlow: the checkpoint that was durable before the first step stands before START
  CHECK(logged[0] == std::pair(session_status::checkpoint, std::int64_t{0}));
  CHECK(logged[1] == std::pair(session_status::start, std::int64_t{1}));
  CHECK(event_files_in(line.directory.path()) == 1);  // all hooks of a directory share one file
  CHECK(session.should_stop());
}

TEST_CASE("TL-2 D-5 a resumed run: what was restored is not written again; START at the step to come", "[training][timeline]") {
  timeline line;
  {
    adding_model model;
    auto session = sw::monitored_training_session(model, line.options(2), line.losses());
    run_to(session, 2);
    session.close();
  }
  adding_model model;
  auto session = sw::monitored_training_session(model, line.options(2), line.losses(), recording_hook{&line.story});
  settle(session);
  CHECK(line.story == story_type{"begin", "create 2"});
  CHECK(session.restored_from() == line.checkpoint(2));
  CHECK(model.sum == 3);
  run_to(session, 3);
  session.close();
  CHECK(line.on_disk() == steps{0, 2, 3});
  CHECK(line.saved() == steps{0, 2, 3});  // TensorFlow: 0 2 2 3
  CHECK(line.started() == steps{1, 3});
  CHECK(line.curve() == true_curve(3));
}

TEST_CASE("TL-3 D-5 an abort in a before_run with a save at every step: the same call does the same step", "[training][timeline]") {
  sw::test::log_capture log;
  timeline line;
  adding_model model;
  auto session = sw::monitored_training_session(model, line.options(1), line.losses(), recording_hook{&line.story, "a "}, aborting_hook{3},
                                                recording_hook{&line.story, "b "});
  run_to(session, 2);
  settle(session);
  line.story.clear();
  {
    const once_waiting mover(line.clock, [&] { line.clock->advance(100ms); });  // the longest first backoff (decision D-2)
    CHECK(session.run(std::int64_t{3}).loss == 6);
  }
  CHECK(session.global_step() == 3);
  CHECK(line.story == story_type{"a before 2", "a error", "b error",  // until the hook that throws
                                 "a create 2", "b create 2",          // restored at step 2
                                 "a before 2", "b before 2", "a after 3", "b after 3"});
  session.close();
  CHECK(line.on_disk() == steps{0, 1, 2, 3});
  CHECK(line.saved() == steps{0, 1, 2, 3});  // TensorFlow: 0 1 2 2 3
  CHECK(line.started() == steps{1, 3});      // TensorFlow: 1
  CHECK(line.curve() == true_curve(3));
  CHECK(session.metrics().recoveries == 1);
}

TEST_CASE("TL-3 D-5 steps that are rolled back are marked, so that viewers drop them", "[training][timeline]") {
  sw::test::log_capture log;
  timeline line;
  adding_model model;
  auto session = sw::monitored_training_session(model, line.options(3), line.losses(), recording_hook{&line.story}, aborting_hook{6});
  named_source source;
  for (const auto& step : session.steps(source)) {
    if (step.global_step == 5) { break; }
  }
  settle(session);
  line.story.clear();
  {
    const once_waiting mover(line.clock, [&] { line.clock->advance(100ms); });
    for (const auto& step : session.steps(source)) {
      CHECK(step.global_step == 4);
      CHECK(step.attempt == 2);
      CHECK(step.rolled_back_from == 5);
      break;
    }
  }
  CHECK(line.story == story_type{"before 5", "error", "create 3", "before 3", "after 4"});
  for (const auto& step : session.steps(source)) {
    if (step.global_step == 7) { break; }
  }
  session.close();
  CHECK(line.saved() == steps{0, 3, 6, 7});
  CHECK(line.started() == steps{1, 4});
  CHECK(line.curve() == true_curve(7));
}

TEST_CASE("TL-4 a thread reports a failure that will not pass: the loop ends, hooks end, then it comes out", "[training][timeline]") {
  sw::test::log_capture log;
  timeline line;
  adding_model model;
  auto session = sw::monitored_training_session(model, line.options(100), line.losses(), recording_hook{&line.story}, coordinator_hook{});
  const auto body = [&](auto& inner) {
    inner.run(std::int64_t{1});
    inner.template hook<coordinator_hook>().threads->request_stop(std::make_exception_ptr(std::runtime_error("a thread's")));
    CHECK_NOTHROW(inner.run(std::int64_t{2}));  // the next run succeeds
    CHECK(inner.should_stop());
  };
  CHECK_THROWS_WITH(sw::with(session, body), "a thread's");
  CHECK(line.story == story_type{"begin", "create 0", "before 0", "after 1", "before 1", "after 2", "end 2", "error"});
  CHECK(line.on_disk() == steps{0, 2});  // including the last checkpoint
}

TEST_CASE("TL-5 a thread reports Aborted: the loop continues, and its next run is one of a new session", "[training][timeline]") {
  sw::test::log_capture log;
  timeline line;
  adding_model model;
  auto session = sw::monitored_training_session(model, line.options(1), line.losses(), recording_hook{&line.story}, coordinator_hook{});
  run_to(session, 1);
  session.hook<coordinator_hook>().threads->request_stop(std::make_exception_ptr(sw::aborted_error("a thread's")));
  CHECK_NOTHROW(run_to(session, 2));
  settle(session);
  line.story.clear();
  CHECK_FALSE(session.should_stop());  // TensorFlow creates the new session here
  {
    const once_waiting mover(line.clock, [&] { line.clock->advance(100ms); });
    run_to(session, 3);
  }
  CHECK(line.story == story_type{"error", "create 2", "before 2", "after 3"});
  CHECK(session.hook<coordinator_hook>().creations == 2);
  CHECK_NOTHROW(session.close());
  CHECK(line.on_disk() == steps{0, 1, 2, 3});
}

TEST_CASE("TL-6 the end of the input: no after_run, a quiet end, hooks end, the last checkpoint is made", "[training][timeline]") {
  timeline line;
  adding_model model;
  const bool is_run = GENERATE(true, false);
  {
    auto session = sw::monitored_training_session(model, line.options(100), line.losses(), recording_hook{&line.story});
    if (is_run) {
      model.before = [](std::int64_t batch) {
        if (batch == 3) { throw sw::out_of_range_error("no more"); }
      };
      CHECK_NOTHROW(sw::with(session, [](auto& inner) { run_to(inner, 9); }));
    } else {
      for ([[maybe_unused]] const auto& step : session.steps(steps{1, 2})) {}
      session.close();
    }
    CHECK(session.stop_reason().cause == sw::stop_cause::end_of_data);
  }
  story_type expected = {"begin", "create 0", "before 0", "after 1", "before 1", "after 2", "end 2"};
  if (is_run) { expected.insert(expected.end() - 1, {"before 2", "error"}); }  // on_error is called for every failed run
  CHECK(line.story == expected);
  CHECK(line.on_disk() == steps{0, 2});
  CHECK(line.curve() == true_curve(2));
}

TEST_CASE("TL-7 user code throws: no end, no last checkpoint; the session is closed, the exception outside", "[training][timeline]") {
  sw::test::log_capture log;
  timeline line;
  adding_model model;
  const bool is_with = GENERATE(true, false);
  const auto body = [](auto& inner) {
    run_to(inner, 3);
    throw std::runtime_error("the user's");
  };
  if (is_with) {
    auto session = sw::monitored_training_session(model, line.options(2), line.losses(), recording_hook{&line.story});
    CHECK_THROWS_WITH(sw::with(session, body), "the user's");
    CHECK(session.should_stop());
    CHECK(session.stop_reason().text == "the user's");
  } else {
    const auto unguarded = [&] {
      auto session = sw::monitored_training_session(model, line.options(2), line.losses(), recording_hook{&line.story});
      body(session);
    };
    CHECK_THROWS_WITH(unguarded(), "the user's");
  }
  CHECK(line.story.back() == (is_with ? "error" : "error unknown"));
  CHECK(std::ranges::count(line.story, "end 3") == 0);
  CHECK(line.on_disk() == steps{0, 2});
  CHECK(line.curve() == true_curve(3));  // no written value is lost
  adding_model again;
  auto next = sw::monitored_training_session(again, line.options(2), line.losses());  // the directory is available
  CHECK(next.global_step() == 2);
}

TEST_CASE("TL-2 D-6 a run resumed at its end does no step, and marks none", "[training][timeline]") {
  timeline line;
  adding_model model;
  for (int run = 0; run < 2; ++run) {
    auto session = sw::monitored_training_session(model, line.options(2), line.losses(), recording_hook{&line.story},
                                                  sw::stop_at_step_hook{{.last_step = 2}});
    while (!session.should_stop()) { session.run(session.global_step() + 1); }
    session.close();
  }
  CHECK(line.story == story_type{"begin", "create 0", "before 0", "after 1", "before 1", "after 2", "end 2",  //
                                 "begin", "create 2", "end 2"});
  CHECK(line.started() == steps{1});
  CHECK(line.saved() == steps{0, 2});
}
