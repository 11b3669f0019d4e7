// SPDX-License-Identifier: Apache-2.0
//
// Tests of a profiler in a complete training session: the spans that saves add to the timelines.
#include "support/catch.hpp"
#include "support/gate.hpp"
#include "support/session_rig.hpp"
#include "support/temporary_directory.hpp"
#include "support/timeline_reading.hpp"

#include <stepwell/hooks/checkpoint_saver_hook.hpp>
#include <stepwell/hooks/profiler_hook.hpp>
#include <stepwell/protocol/hook.hpp>
#include <stepwell/session/monitored_session.hpp>
#include <stepwell/training/monitored_training_session.hpp>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace sw = stepwell;
namespace test = stepwell::test;

TEST_CASE("the timeline of a step that saves shows the copy, and at the end the writing in the background", "[training][profiler]") {
  const test::named_thread thread("training");
  test::session_rig rig;
  const auto profiler = rig.directory / "profile";
  auto session = sw::monitored_training_session(
      rig.model, rig.options(),
      sw::chief_only(
          sw::profiler_hook{{.save_steps = 2, .output_dir = profiler, .events = {.file_system = rig.files, .threads = rig.pool}}}));
  test::run_until(session, 2);
  const auto at_once = test::shown_in(profiler, 2);
  CHECK(test::has(at_once, "run", "training"));
  CHECK(test::has(at_once, test::point_of<sw::checkpoint_saver_hook>("after_run"), "training"));
  REQUIRE(test::has(at_once, "boundary", "training"));
  CHECK(test::has(at_once, "snapshot", "training"));
  session.close();
  const auto at_last = test::shown_in(profiler, 2);
  for (const auto* name : {"save", "encode", "write", "sync data", "write index"}) {
    INFO(name);
    CHECK(test::has(at_last, name, "stepwell io 0"));
  }
  CHECK(test::has(at_last, "snapshot", "training"));
  CHECK(rig.steps() == "0 2");
}

TEST_CASE("a write that has not ended when a timeline is written is in the next one", "[training][profiler]") {
  test::session_rig rig;
  test::gate gate;
  const auto profiler = rig.directory / "profile";
  const auto hold_data = [&](const test::event& event) {
    if (event.kind == test::operation::write && event.path.find(".data-") != std::string::npos) { gate.pass(); }
  };
  auto session = sw::monitored_training_session(rig.model, rig.options(), sw::profiler_hook{{.save_steps = 2, .output_dir = profiler}});
  const std::unique_ptr<test::gate, void (*)(test::gate*)> open_at_last(&gate, [](test::gate* held) { held->open(); });
  test::wait_for_saves(session);
  rig.files->before_each(hold_data);
  gate.close();
  test::run_until(session, 2);
  CHECK(test::count(test::shown_in(profiler, 2), "snapshot") == 1);
  CHECK(test::count(test::shown_in(profiler, 2), "save") == 0);
  gate.open();
  test::wait_for_saves(session);
  gate.close();
  test::run_until(session, 4);
  CHECK(test::count(test::shown_in(profiler, 4), "save") == 1);
  CHECK(test::count(test::shown_in(profiler, 2), "save") == 0);
  gate.open();
  session.close();
  CHECK(test::count(test::shown_in(profiler, 4), "save") == 2);
}

TEST_CASE("a profiler without a directory writes to the directory of its session", "[training][profiler]") {
  test::session_rig rig;
  auto options = rig.options();
  options.summaries.save_steps = 1;
  auto session = sw::monitored_training_session(rig.model, options, sw::profiler_hook{{.save_steps = 2}});
  test::run_until(session, 4);
  session.close();
  CHECK(test::timelines_in(rig.directory.path()) == std::vector<std::int64_t>{2, 4});
  const auto is_event_file = [](const auto& entry) { return entry.path().filename().string().starts_with("events.out.tfevents."); };
  CHECK(std::ranges::count_if(std::filesystem::directory_iterator(rig.directory.path()), is_event_file) == 1);
}

TEST_CASE("a profiler without a directory, in a session without one, writes to the current directory", "[training][profiler]") {
  const test::temporary_directory directory;
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(directory.path());
  {
    test::adding_model model;
    sw::monitored_session session(sw::training_options{}, model, sw::profiler_hook{{.save_steps = 2}});
    test::run_until(session, 2);
    session.close();
  }
  std::filesystem::current_path(before);
  CHECK(test::timelines_in(directory.path()) == std::vector<std::int64_t>{2});
}
