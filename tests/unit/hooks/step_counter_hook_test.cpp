// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"
#include "support/log_capture.hpp"
#include "support/temporary_directory.hpp"
#include "unit/hooks/event_reading.hpp"

#include <stepwell/hooks/step_counter_hook.hpp>
#include <stepwell/model/model_session.hpp>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace sw = stepwell;
using namespace std::chrono_literals;
using sw::test::scalars_in;
using sw::test::temporary_directory;

namespace {

/// A model that owns its global step, so that one run can make several steps or go back.
struct striding_model {
  std::int64_t steps = 0;
  std::int64_t stride = 1;
  void step() { steps += stride; }
  std::int64_t& global_step() { return steps; }
  sw::variable_list variables() { return sw::variables({{"stride", stride}}); }
};

/// Advances the clock by `gap` before each of `runs` runs. Returns the written rates by step.
std::map<std::int64_t, float> rates(striding_model model, sw::step_counter_options options, int runs, sw::clock::duration gap) {
  const temporary_directory directory;
  const auto clock = std::make_shared<sw::manual_clock>();
  options.output_dir = directory.path();
  options.events.clock = clock;
  sw::monitored_session session(sw::training_options{.clock = clock}, model, sw::step_counter_hook{std::move(options)});
  for (int i = 0; i < runs; ++i) {
    clock->advance(gap);
    session.run();
  }
  session.close();
  return scalars_in(directory.path(), "global_step/sec");
}

using expected = std::map<std::int64_t, float>;

}  // namespace

TEST_CASE("HOOK-CNT-1, D-8 a period must be above zero; both given, seconds are used with a warning", "[hooks][step_counter]") {
  CHECK_THROWS_AS((sw::step_counter_hook{{.every_n_steps = sw::none}}), sw::invalid_argument_error);
  CHECK_THROWS_AS((sw::step_counter_hook{{.every_n_steps = 0, .every_n_secs = 0}}), sw::invalid_argument_error);
  CHECK_NOTHROW(sw::step_counter_hook{{.every_n_steps = sw::none, .every_n_secs = 1}});
  sw::test::log_capture log;
  CHECK(rates({}, {.every_n_steps = 1, .every_n_secs = 10}, 3, 5s) == expected{{3, 0.2f}});  // seconds are used: runs 1 and 3
  CHECK(log.contains(sw::log_level::warning, "both every_n_secs and every_n_steps"));
}

TEST_CASE("HOOK-CNT-1 the period is 100 steps unless one is given", "[hooks][step_counter]") {
  CHECK(rates({}, {}, 201, 1s) == expected{{101, 1.0f}, {201, 1.0f}});
}

TEST_CASE("HOOK-CNT-2 HOOK-CNT-3, D-1 the rate is logged, and written and flushed where there is a directory or a writer",
          "[hooks][step_counter]") {
  sw::test::log_capture log;
  const temporary_directory directory;
  const auto clock = std::make_shared<sw::manual_clock>();
  striding_model model;
  const auto writer = std::make_shared<sw::summary::writer>(directory.path());
  sw::monitored_session session(sw::training_options{.clock = clock}, model, sw::step_counter_hook{{.every_n_steps = 2, .writer = writer}},
                                sw::step_counter_hook{{.every_n_steps = 3}});
  for (int i = 0; i < 4; ++i) {
    clock->advance(250ms);
    session.run();
  }
  session.close();
  CHECK_FALSE(writer->is_closed());  // a shared writer is flushed, but not closed
  CHECK(scalars_in(directory.path(), "global_step/sec") == expected{{3, 4.0f}});
  CHECK(log.contains(sw::log_level::info, "global_step/sec: 4"));
  CHECK(log.count(sw::log_level::info) == 2);  // one line from each hook, at steps 3 and 4
}

TEST_CASE("HOOK-CNT-4 the first trigger only starts the clock", "[hooks][step_counter]") {
  CHECK(rates({}, {.every_n_steps = 10}, 30, 500ms) == expected{{11, 2.0f}, {21, 2.0f}});
  CHECK(rates({}, {.every_n_secs = 0.1}, 3, 200ms) == expected{{2, 5.0f}, {3, 5.0f}});
}

TEST_CASE("HOOK-CNT-4 several steps of one run are counted as several", "[hooks][step_counter]") {
  CHECK(rates({.stride = 5}, {.every_n_steps = 10}, 5, 1s) == expected{{15, 5.0f}, {25, 5.0f}});
  CHECK(rates({.stride = 5}, {.every_n_steps = 5}, 5, 1s) == expected{{10, 5.0f}, {15, 5.0f}, {20, 5.0f}, {25, 5.0f}});
  CHECK(rates({.stride = 10}, {.every_n_steps = 5}, 5, 1s) == expected{{20, 10.0f}, {30, 10.0f}, {40, 10.0f}, {50, 10.0f}});
}

TEST_CASE("HOOK-CNT no rate is reported if the step went backwards or no time has passed", "[hooks][step_counter]") {
  sw::test::log_capture log;
  CHECK(rates({.steps = 100, .stride = -5}, {.every_n_secs = 1}, 3, 1s).empty());
  CHECK(log.contains(sw::log_level::warning, "global_step went from 95 to 90"));
  CHECK(rates({}, {.every_n_steps = 1}, 3, 0s).empty());
}

TEST_CASE("the rate is logged at most once in ten seconds, or each time with log_every_secs = 0", "[hooks][step_counter]") {
  sw::test::log_capture log;
  CHECK(rates({}, {.every_n_steps = 1}, 15, 1s).size() == 14);
  CHECK(log.count(sw::log_level::info) == 2);
  log.clear();
  CHECK(rates({}, {.every_n_steps = 1, .log_every_secs = 0}, 15, 1s).size() == 14);
  CHECK(log.count(sw::log_level::info) == 14);
}

TEST_CASE("HOOK-CNT-5 a step that does not increase causes five warnings for each process", "[hooks][step_counter]") {
  sw::test::log_capture log;
  const auto warnings = [&] {
    const auto all = log.messages();
    return std::ranges::count_if(all, [](const auto& message) {
      return message.level == sw::log_level::warning &&
             message.text.find("global step (global_step) has not been increased") != std::string::npos;
    });
  };
  CHECK_FALSE(rates({}, {.every_n_steps = 1}, 20, 1s).empty());
  CHECK(warnings() == 0);
  CHECK(rates({.steps = 7, .stride = 0}, {.every_n_steps = 1}, 3, 1s).empty());
  CHECK(warnings() == 3);
  CHECK(log.contains(sw::log_level::warning, "Current value (could be stable): 7 vs previous value: 7."));
  CHECK(rates({.stride = 0}, {.every_n_secs = 1}, 20, 1s).empty());
  CHECK(warnings() == 5);
}

TEST_CASE("HOOK-CNT a hook that is off does nothing", "[hooks][step_counter]") {
  striding_model model;
  sw::test::log_capture log;
  sw::monitored_session session(model, sw::step_counter_hook::off());
  for (int i = 0; i < 300; ++i) { session.run(); }
  session.close();
  CHECK(log.messages().empty());
}
