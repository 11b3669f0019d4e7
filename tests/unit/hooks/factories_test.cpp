// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"
#include "support/log_capture.hpp"
#include "support/temporary_directory.hpp"
#include "support/toy_model.hpp"
#include "unit/hooks/event_reading.hpp"

#include <stepwell/base/error.hpp>
#include <stepwell/checkpoint/find_checkpoints.hpp>
#include <stepwell/hooks/checkpoint_saver_hook.hpp>
#include <stepwell/hooks/logging_tensor_hook.hpp>
#include <stepwell/hooks/stop_hooks.hpp>
#include <stepwell/hooks/summary_saver_hook.hpp>
#include <stepwell/model/model_session.hpp>
#include <stepwell/training/monitored_training_session.hpp>

#include <chrono>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>

namespace sw = stepwell;
using namespace std::chrono_literals;
using namespace sw::test;

TEST_CASE("stop_at_step is a stop_at_step_hook with a last step", "[hooks][factories]") {
  counting_model model;
  sw::monitored_session session(model, sw::stop_at_step(3));
  CHECK(session.run_all().steps == 3);
  CHECK_THROWS_WITH(sw::stop_at_step(-1), ContainsSubstring("last_step is -1"));
}

TEST_CASE("log_every logs in steps and in seconds", "[hooks][factories]") {
  const log_capture log;
  const auto time = std::make_shared<sw::manual_clock>();
  counting_model model;
  sw::monitored_session session({.clock = time}, model, sw::log_every(3, sw::tag("by steps", &counting_model::count)),
                                sw::log_every(40s, sw::tag("by seconds", &counting_model::count)));
  for (int i = 0; i < 7; ++i) {
    session.run();
    time->advance(10s);
  }
  CHECK(log.contains(sw::log_level::info, "by steps = 4"));
  CHECK(log.contains(sw::log_level::info, "by seconds = 5"));
  CHECK(log.count(sw::log_level::info) == 5);
}

TEST_CASE("save_every saves in steps and in seconds", "[hooks][factories]") {
  const temporary_directory directory;
  const auto time = std::make_shared<sw::manual_clock>();
  counting_model model;
  sw::monitored_session session({.clock = time}, model, sw::save_every(2, directory / "steps"),
                                sw::save_every(1min, directory / "seconds"));
  for (int i = 0; i < 4; ++i) {
    session.run();
    time->advance(25s);
  }
  session.close();
  CHECK(sw::list_checkpoints(directory / "steps").size() >= 2);    // steps 0 and 4, and 2 unless the save of 0 took that long
  CHECK(sw::list_checkpoints(directory / "seconds").size() == 2);  // steps 0 and 4
}

TEST_CASE("summarize_every writes in steps and in seconds", "[hooks][factories]") {
  const temporary_directory directory;
  counting_model model;
  sw::monitored_session session(model, sw::summarize_every(2, directory / "a", sw::summary::scalar("count", &counting_model::count)),
                                sw::summarize_every(1h, directory / "b", sw::summary::scalar("count", &counting_model::count)));
  for (int i = 0; i < 4; ++i) { session.run(); }
  session.close();
  using values = std::map<std::int64_t, float>;
  CHECK(scalars_in(directory / "a", "count") == values{{1, 1}, {3, 3}, {4, 4}});  // 4 is the last step
  CHECK(scalars_in(directory / "b", "count") == values{{1, 1}, {4, 4}});
}

TEST_CASE("summarize_every without a directory writes to the event file of its session", "[hooks][factories]") {
  const temporary_directory directory;
  counting_model model;
  auto session = sw::monitored_training_session(model, {.checkpoint_dir = directory.path(), .saves = {.save_secs = sw::none}},
                                                sw::summarize_every(2, sw::summary::scalar("by steps", &counting_model::count)),
                                                sw::summarize_every(1h, sw::summary::scalar("by seconds", &counting_model::count)));
  for (int i = 0; i < 4; ++i) { session.run(); }
  session.close();
  using values = std::map<std::int64_t, float>;
  CHECK(scalars_in(directory.path(), "by steps") == values{{1, 1}, {3, 3}, {4, 4}});  // 4 is the last step
  CHECK(scalars_in(directory.path(), "by seconds") == values{{1, 1}, {4, 4}});
  CHECK(event_files_in(directory.path()) == 1);
  CHECK_THROWS_AS(sw::monitored_session(model, sw::summarize_every(2, sw::summary::scalar("count", &counting_model::count))),
                  sw::invalid_argument_error);
}

TEST_CASE("periods that make no sense are refused with the name of the option", "[hooks][factories]") {
  const temporary_directory directory;
  CHECK_THROWS_WITH(sw::log_every(0, &counting_model::count), ContainsSubstring("every_n_iter=0"));
  CHECK_THROWS_WITH(sw::log_every(-1s, &counting_model::count), ContainsSubstring("every_n_secs=-1"));
  CHECK_THROWS_WITH(sw::save_every(-5, directory.path()), ContainsSubstring("save_steps is -5"));
  CHECK_THROWS_WITH(sw::save_every(-5s, directory.path()), ContainsSubstring("save_secs is -5"));
  CHECK_THROWS_WITH(sw::summarize_every(-5, directory.path(), sw::summary::scalar("count", &counting_model::count)),
                    ContainsSubstring("save_steps is -5"));
  CHECK_THROWS_WITH((sw::summary_saver_hook{{.output_dir = directory.path(), .save_secs = std::numeric_limits<double>::quiet_NaN()},
                                            sw::summary::scalar("count", &counting_model::count)}),
                    ContainsSubstring("save_secs is nan"));
}
