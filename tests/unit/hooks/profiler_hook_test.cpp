// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"
#include "support/fault_file_system.hpp"
#include "support/log_capture.hpp"
#include "support/temporary_directory.hpp"
#include "support/timeline_reading.hpp"
#include "support/toy_model.hpp"
#include "unit/hooks/event_reading.hpp"

#include <stepwell/base/trace.hpp>
#include <stepwell/hooks/profiler_hook.hpp>
#include <stepwell/hooks/summary_saver_hook.hpp>
#include <stepwell/model/model_session.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace sw = stepwell;
namespace test = stepwell::test;
using namespace std::chrono_literals;
using steps = std::vector<std::int64_t>;
using texts = std::vector<std::string>;

namespace {

/// A model that owns its global step, so that one run can make several steps. With a clock, each run takes 5 ms,
/// including 2 ms in a span of its own.
struct timed_model {
  std::shared_ptr<sw::manual_clock> time = nullptr;
  std::int64_t steps = 0;
  std::int64_t stride = 1;
  std::function<void()> before = nullptr;

  void step() {
    if (before) { before(); }
    if (time) {
      time->advance(3ms);
      const sw::trace_span part("matmul", "model");
      time->advance(2ms);
    }
    steps += stride;
  }
  std::int64_t& global_step() { return steps; }
  sw::variable_list variables() { return sw::variables({{"stride", stride}}); }
};

/// A hook that takes 1 ms before and 1 ms after each run, and records the trace level of the run.
struct slow_hook {
  sw::manual_clock* time;
  std::vector<sw::trace_level>* levels = nullptr;

  void before_run(auto&) { time->advance(1ms); }
  void after_run(auto&, const auto& values) {
    time->advance(1ms);
    if (levels != nullptr) { levels->push_back(values.options().trace_level.value_or(sw::trace_level::none)); }
  }
};

/// The output directory of a profiler, and a manual clock.
struct profiler_rig {
  test::temporary_directory directory;
  std::shared_ptr<sw::manual_clock> time = std::make_shared<sw::manual_clock>();
  sw::training_options options{.clock = time};

  [[nodiscard]] sw::profiler_hook every(std::int64_t save_steps, sw::summary::writer_options events = {}) const {
    return sw::profiler_hook{{.save_steps = save_steps, .output_dir = directory.path(), .events = std::move(events)}};
  }
};

texts tags_in(const std::string& directory) {
  texts found;
  for (const auto& event : test::events_in(directory)) {
    if (const auto* seen = std::get_if<sw::format::tagged_run_metadata>(&event.what)) { found.push_back(seen->tag); }
  }
  return found;
}

/// A hook that throws once before the seventh run.
struct losing_hook {
  bool& is_lost;
  void before_run(auto& context) {
    if (context.global_step() == 6 && !std::exchange(is_lost, true)) { throw sw::aborted_error("lost"); }
  }
};

/// Boundary work that fails; its hook requests a save at step 2.
struct failing_work final : sw::boundary_work {
  bool try_save(const sw::boundary_state&) override { throw std::runtime_error("no room"); }
};
struct failing_hook {
  std::shared_ptr<failing_work> work = std::make_shared<failing_work>();

  void after_create_session(auto& session, auto&) { session.add_work(work); }
  void after_run(auto& context, const auto&) {
    if (context.global_step() == 2) { context.request_save(*work); }
  }
};

}  // namespace

TEST_CASE("HOOK-PROF-1 a due run goes to timeline-STEP.json, and its metadata to the event file under step_STEP", "[hooks][profiler]") {
  const test::named_thread thread("training");
  const profiler_rig rig;
  timed_model model{rig.time};
  sw::monitored_session session(rig.options, model, slow_hook{rig.time.get()}, rig.every(2));
  session.run();
  CHECK(test::timelines_in(rig.directory.path()).empty());
  session.run();
  REQUIRE(test::timelines_in(rig.directory.path()) == steps{2});  // written when the run is done
  const auto shown = test::shown_in(rig.directory.path(), 2);
  CHECK(test::names_of(shown) == texts{test::point_of<slow_hook>("before_run"), "run", "matmul", test::point_of<slow_hook>("after_run"),
                                       test::point_of<sw::profiler_hook>("after_run")});
  REQUIRE(shown.size() == 5);
  for (const auto& span : shown) { CHECK(span.thread == "training"); }
  CHECK(shown[0].micros == 1000);
  CHECK(shown[1].micros == 5000);
  CHECK(shown[2].micros == 2000);
  CHECK(shown[2].begin == shown[1].begin + 3000);
  CHECK(shown[3].micros == 1000);
  CHECK(shown[4].micros == 0);  // begins at the same time as the longer one, and therefore comes after it
  session.close();
  const auto events = test::events_in(rig.directory.path());
  const auto found =
      std::ranges::find_if(events, [](const auto& event) { return std::holds_alternative<sw::format::tagged_run_metadata>(event.what); });
  REQUIRE(found != events.end());
  const auto& metadata = std::get<sw::format::tagged_run_metadata>(found->what);
  CHECK(found->step == 2);
  CHECK(metadata.tag == "step_2");
  CHECK(metadata.run_metadata.find("matmul") != std::string::npos);
}

TEST_CASE("HOOK-PROF-1 D-8 exactly one period is wanted; of two, seconds are taken with a warning", "[hooks][profiler]") {
  const test::temporary_directory directory;
  test::log_capture log;
  CHECK_THROWS_AS((sw::profiler_hook{{.output_dir = directory.path()}}), sw::invalid_argument_error);
  CHECK_THROWS_AS((sw::profiler_hook{{.save_steps = 0, .output_dir = directory.path()}}), sw::invalid_argument_error);
  CHECK_THROWS_AS((sw::profiler_hook{{.save_secs = sw::none, .output_dir = directory.path()}}), sw::invalid_argument_error);
  CHECK(test::file_names_in(directory.path()).empty());
  CHECK_NOTHROW((sw::profiler_hook{{.save_steps = 2, .save_secs = 1.5, .output_dir = directory.path()}}));
  CHECK(log.contains(sw::log_level::warning, "save_secs"));
}

TEST_CASE("HOOK-PROF-2 the hook opens the event file that the directory has in this process, when it is made", "[hooks][profiler]") {
  const profiler_rig rig;
  const auto hook = rig.every(2);
  CHECK(test::event_files_in(rig.directory.path()) == 1);
  const auto known = sw::summary::writer::shared(rig.directory.path());
  CHECK(test::event_files_in(rig.directory.path()) == 1);
  CHECK_THROWS_AS((sw::profiler_hook{{.save_steps = 2, .output_dir = known->path()}}), sw::error);  // the path is not a directory
}

TEST_CASE("HOOK-PROF-3 the hook requests a full trace for a due run, and nothing for others", "[hooks][profiler]") {
  using enum sw::trace_level;
  const profiler_rig rig;
  timed_model model;
  std::vector<sw::trace_level> levels;
  sw::monitored_session session(rig.options, model, rig.every(2), slow_hook{rig.time.get(), &levels});
  for (int i = 0; i < 5; ++i) { session.run(); }
  CHECK(levels == std::vector{none, full, none, full, none});
}

TEST_CASE("HOOK-PROF-3 a due run that fails has no timeline, and the next one is due", "[hooks][profiler]") {
  const profiler_rig rig;
  timed_model model{rig.time};
  sw::monitored_session session(rig.options, model, rig.every(2));
  session.run();
  model.before = [] { throw std::runtime_error("not this time"); };
  CHECK_THROWS_AS(session.run(), std::runtime_error);
  CHECK(test::timelines_in(rig.directory.path()).empty());
  model.before = nullptr;
  session.run();
  const auto names = test::names_of(test::shown_in(rig.directory.path(), 2));
  CHECK(std::ranges::count(names, "run") == 2);  // the failed run is recorded, too
  CHECK(std::ranges::count(names, "matmul") == 1);
}

TEST_CASE("HOOK-PROF-4 the first run is never traced, at whatever step it begins, and a file has the step that the run made",
          "[hooks][profiler]") {
  const profiler_rig rig;
  timed_model model{.steps = GENERATE(std::int64_t{0}, std::int64_t{300}), .stride = 3};
  const auto start = model.steps;
  {
    sw::monitored_session session(rig.options, model, rig.every(4));
    for (int i = 0; i < 6; ++i) { session.run(); }
    session.close();
  }
  CHECK(test::timelines_in(rig.directory.path()) == steps{start + 6, start + 12, start + 18});
  sw::monitored_session next(rig.options, model, rig.every(1));
  next.run();
  CHECK(test::timelines_in(rig.directory.path()).size() == 3);
  next.run();
  CHECK(test::timelines_in(rig.directory.path()).back() == start + 24);
}

TEST_CASE("HOOK-PROF-5 every two steps: the second and the fourth run, not the first, third and fifth", "[hooks][profiler]") {
  const profiler_rig rig;
  timed_model model;
  sw::monitored_session session(rig.options, model, rig.every(2));
  std::vector<steps> after_each;
  for (int i = 0; i < 5; ++i) {
    session.run();
    after_each.push_back(test::timelines_in(rig.directory.path()));
  }
  CHECK(after_each == std::vector<steps>{{}, {2}, {2}, {2, 4}, {2, 4}});
}

TEST_CASE("HOOK-PROF-5 every step: from the second run on", "[hooks][profiler]") {
  const profiler_rig rig;
  timed_model model;
  sw::monitored_session session(rig.options, model, rig.every(1));
  for (int i = 0; i < 4; ++i) { session.run(); }
  session.close();
  CHECK(test::timelines_in(rig.directory.path()) == steps{2, 3, 4});
  CHECK(tags_in(rig.directory.path()) == texts{"step_2", "step_3", "step_4"});
}

TEST_CASE("HOOK-PROF-5 every two seconds since the last one, by the session's clock", "[hooks][profiler]") {
  const profiler_rig rig;
  timed_model model;
  sw::monitored_session session(rig.options, model, sw::profiler_hook{{.save_secs = 2, .output_dir = rig.directory.path()}});
  const auto start = rig.time->now();
  std::vector<steps> after_each;
  for (const auto at : {0ms, 2500ms, 2600ms, 4400ms, 4500ms}) {
    rig.time->advance(start + at - rig.time->now());
    session.run();
    after_each.push_back(test::timelines_in(rig.directory.path()));
  }
  CHECK(after_each == std::vector<steps>{{}, {2}, {2}, {2}, {2, 5}});
}

TEST_CASE("HOOK-PROF-5 in a loop of steps the timeline is there when its step is yielded", "[hooks][profiler]") {
  const profiler_rig rig;
  timed_model model;
  sw::monitored_session session(rig.options, model, rig.every(2));
  for (const auto& step : session.steps()) {
    CHECK(test::timelines_in(rig.directory.path()).size() == static_cast<std::size_t>(step.global_step / 2));
    if (step.global_step == 5) { break; }
  }
}

TEST_CASE("HOOK-PROF-4 a step that comes again after a recovery replaces its file and takes a tag of its own", "[hooks][profiler]") {
  const profiler_rig rig;
  test::log_capture log;
  test::counting_model model;
  bool is_lost = false;
  sw::training_options options = rig.options;
  options.retry.initial_backoff = 0;
  sw::monitored_session session(options, model, rig.every(2), losing_hook{is_lost});
  while (session.global_step() < 6) { session.run(); }
  while (session.global_step() < 8) { session.run(); }
  session.close();
  CHECK(is_lost);
  CHECK(test::timelines_in(rig.directory.path()) == steps{2, 4, 6, 8});
  CHECK(tags_in(rig.directory.path()) == texts{"step_2", "step_4", "step_6", "step_2_2", "step_4_2", "step_6_2", "step_8"});
}

TEST_CASE("a timeline that cannot be written is a warning, and training continues", "[hooks][profiler]") {
  const profiler_rig rig;
  test::log_capture log;
  timed_model model;
  const auto files = std::make_shared<test::fault_file_system>();
  sw::monitored_session session(rig.options, model, rig.every(2, {.file_system = files}));
  files->inject({.path_contains = "timeline-2"});
  for (int i = 0; i < 4; ++i) { session.run(); }
  session.close();
  CHECK(test::timelines_in(rig.directory.path()) == steps{4});
  CHECK(log.contains(sw::log_level::warning, "the timeline of step 2 is not written"));
  CHECK(tags_in(rig.directory.path()) == texts{"step_2", "step_4"});
}

TEST_CASE("a failed event file is a warning if only the profiler writes to it, and otherwise an error of the shared writer",
          "[hooks][profiler]") {
  const profiler_rig rig;
  test::log_capture log;
  timed_model model;
  const auto files = std::make_shared<test::fault_file_system>();
  const bool is_alone = GENERATE(true, false);
  auto profiler = rig.every(1, {.file_system = files});
  const auto other = is_alone ? nullptr : sw::summary::writer::shared(rig.directory.path(), {.file_system = files});
  files->inject({.kind = test::operation::write, .path_contains = "tfevents", .from_then_on = true});
  sw::monitored_session session(rig.options, model, std::move(profiler));
  for (int i = 0; i < 3; ++i) { session.run(); }
  if (is_alone) {
    CHECK_NOTHROW(session.close());
    CHECK(log.contains(sw::log_level::warning, "metadata"));
  } else {
    CHECK_THROWS_AS(session.close(), sw::error);
  }
  CHECK(test::timelines_in(rig.directory.path()) == steps{2, 3});
}

TEST_CASE("a boundary that fails has its timeline, and fails", "[hooks][profiler]") {
  const profiler_rig rig;
  test::log_capture log;
  timed_model model;
  sw::monitored_session session(rig.options, model, failing_hook{}, rig.every(2));
  session.run();
  CHECK_THROWS_AS(session.run(), std::runtime_error);
  CHECK(test::count(test::shown_in(rig.directory.path(), 2), "boundary") == 1);
}

TEST_CASE("summaries of a traced run are written on its timeline, and those of others are not", "[hooks][profiler]") {
  const profiler_rig rig;
  timed_model model;
  const sw::summary::writer_options events{.threads = std::make_shared<sw::io::pool>(1)};
  const bool is_summed_up = GENERATE(true, false);
  sw::monitored_session session(
      rig.options, model,
      sw::summary_saver_hook{
          sw::summary_saver_options{.output_dir = rig.directory.path(), .events = events, .save_steps = is_summed_up ? 1 : 100},
          sw::summary::scalar("stride", &timed_model::stride)},
      rig.every(2, events));
  for (int i = 0; i < 3; ++i) { session.run(); }
  session.close();
  CHECK(test::timelines_in(rig.directory.path()) == steps{2});
  CHECK(test::has(test::shown_in(rig.directory.path(), 2), "write", "stepwell io 0") == is_summed_up);
}
