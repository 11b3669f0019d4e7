// SPDX-License-Identifier: Apache-2.0
//
// Tests of the behaviour of each built-in hook after a rollback of the state (contract REC-12).
#include "support/catch.hpp"
#include "support/log_capture.hpp"
#include "unit/hooks/event_reading.hpp"
#include "unit/training/training_rig.hpp"

#include <stepwell/hooks/logging_tensor_hook.hpp>
#include <stepwell/hooks/step_counter_hook.hpp>
#include <stepwell/hooks/summary_saver_hook.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace sw = stepwell;
using namespace sw::test;
using namespace std::chrono_literals;
using steps = std::vector<std::int64_t>;

namespace {

/// A training to `last` with a checkpoint every second step. One failure at `fails_at` causes a recovery. Each run
/// takes one second.
struct rolled_back {
  temporary_directory directory;
  std::shared_ptr<sw::manual_clock> clock = std::make_shared<sw::manual_clock>();
  adding_model model;
  int runs = 0;

  template<class... Hooks>
  void train(std::int64_t last, std::int64_t fails_at, Hooks... hooks) {
    model.before = [this, fails_at, times = 1](std::int64_t batch) mutable {
      ++runs;
      clock->advance(1s);
      if (batch == fails_at && times-- > 0) { throw sw::aborted_error("on the way"); }
    };
    sw::checkpoint_saver_hook saver(
        {.checkpoint_dir = directory.path(), .save_steps = 2, .saver = {.max_to_keep = sw::none, .sync = false}});
    sw::session_setup setup{.options = {.retry = {.initial_backoff = 0}, .clock = clock}, .find_checkpoint = saver.checkpoint_finder()};
    sw::monitored_session session(std::move(setup), model, std::move(saver), std::move(hooks)...);
    while (session.global_step() < last && !session.should_stop()) { session.run(session.global_step() + 1); }
    CHECK(session.metrics().recoveries == 1);
    session.close();
  }
};

}  // namespace

TEST_CASE("REC-12 D-5 the checkpoint saver writes nothing again, and counts from the step it went back to", "[hooks][recovery]") {
  rolled_back line;
  line.train(7, 6);  // rolled back from 5 to 4
  CHECK(line.runs == 9);
  CHECK(steps_on_disk(line.directory) == steps{0, 2, 4, 6, 7});
  steps saved;
  for (const auto& [step, path] : notes_in(line.directory.path(), sw::format::session_status::checkpoint)) { saved.push_back(step); }
  CHECK(saved == steps{0, 2, 4, 6, 7});
}

TEST_CASE("REC-12 the stop hook keeps its last step, also where it was given as a number of steps", "[hooks][recovery]") {
  rolled_back line;
  line.train(100, 4, sw::stop_at_step_hook{{.num_steps = 5}});  // rolled back from 3 to 2
  CHECK(steps_on_disk(line.directory).back() == 5);
}

TEST_CASE("REC-12 D-5 summaries begin anew at the first run, after a START that drops what was lost", "[hooks][recovery]") {
  rolled_back line;
  sw::summary_saver_options options{.output_dir = line.directory.path(), .save_steps = 3};
  line.train(9, 6, sw::summary_saver_hook{options, sw::summary::scalar("loss", &adding_model::result::loss)});  // rolled back from 5 to 4
  using note = std::pair<std::int64_t, std::string>;
  CHECK(notes_in(line.directory.path(), sw::format::session_status::start) == std::vector<note>{{1, ""}, {5, ""}});
  steps written;
  for (const auto& [step, value] : tagged_in(line.directory.path(), "loss")) { written.push_back(step); }
  CHECK(written == steps{1, 4, 5, 8, 9});  // TensorFlow writes nothing until 7; 9 is the last step
}

TEST_CASE("REC-12 the step counter reports no rate over a rollback, and none is negative", "[hooks][recovery]") {
  sw::test::log_capture log;
  rolled_back line;
  line.train(9, 6, sw::step_counter_hook{{.every_n_steps = 2, .output_dir = line.directory.path()}});  // rolled back from 5 to 4
  steps counted;
  for (const auto& [step, value] : tagged_in(line.directory.path(), "global_step/sec")) {
    counted.push_back(step);
    CHECK(std::get<float>(value.value) == 1);  // one step a second
  }
  CHECK(counted == steps{3, 5, 7, 9});
  CHECK_FALSE(log.contains(sw::log_level::warning, "no rate is reported"));
}

TEST_CASE("REC-12 the logging hook counts runs that succeeded, before and after", "[hooks][recovery]") {
  sw::test::log_capture log;
  rolled_back line;
  line.train(6, 4, sw::logging_tensor_hook{{.every_n_iter = 3}, sw::tag("batch", &adding_model::result::batch)});  // back from 3 to 2
  std::vector<std::string> lines;
  for (const auto& message : log.messages()) {
    if (message.text.starts_with("batch = ")) { lines.push_back(message.text.substr(0, message.text.find(" ("))); }
  }
  CHECK(lines == std::vector<std::string>{"batch = 1", "batch = 4", "batch = 6"});  // batches: 1 2 3 (4) 4 4 5 6
}
