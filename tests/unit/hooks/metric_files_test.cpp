// SPDX-License-Identifier: Apache-2.0
//
// Tests of a session's scalars in text files: by a summary_saver_hook, and by the options of a training session.
#include "support/catch.hpp"
#include "support/fault_file_system.hpp"
#include "support/file_text.hpp"
#include "support/log_capture.hpp"
#include "support/temporary_directory.hpp"
#include "support/toy_model.hpp"
#include "unit/hooks/event_reading.hpp"

#include <stepwell/hooks/evaluate_every.hpp>
#include <stepwell/hooks/scheduled_hook.hpp>
#include <stepwell/hooks/summary_saver_hook.hpp>
#include <stepwell/model/model_session.hpp>
#include <stepwell/schedules/schedules.hpp>
#include <stepwell/training/monitored_training_session.hpp>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace sw = stepwell;
using sw::test::adding_model;
using sw::test::file_text;
using sw::test::temporary_directory;

namespace {

const std::string header = "wall_time,step,tag,value\n";

/// Returns a line with the time of the manual clock.
std::string line(std::int64_t step, const std::string& tag, const std::string& value) {
  return "1700000000.000000," + std::to_string(step) + "," + tag + "," + value + "\n";
}

std::shared_ptr<sw::summary::csv_writer> csv_in(const temporary_directory& directory, const std::shared_ptr<sw::clock>& time,
                                                std::shared_ptr<sw::io::file_system> files = sw::io::posix_file_system()) {
  return std::make_shared<sw::summary::csv_writer>(directory / "metrics.csv",
                                                   sw::summary::metric_writer_options{.file_system = std::move(files), .clock = time});
}

}  // namespace

TEST_CASE("a summary hook writes its scalars to metric files, with or without an event file", "[hooks][metrics]") {
  const temporary_directory directory;
  const auto clock = std::make_shared<sw::manual_clock>();
  const bool has_events = GENERATE(true, false);
  adding_model model;
  sw::monitored_session session(
      sw::training_options{.clock = clock}, model,
      sw::summary_saver_hook{sw::summary_saver_options{
                                 .output_dir = has_events ? directory.path() : "", .metrics = {csv_in(directory, clock)}, .save_steps = 2},
                             sw::summary::scalar("sum", &adding_model::sum), sw::summary::histogram("weights", &adding_model::weights),
                             sw::summary::scalar("batch", &adding_model::result::batch)});
  for (std::int64_t batch = 1; batch <= 3; ++batch) { session.run(batch); }
  session.close();
  CHECK(file_text(directory / "metrics.csv") ==
        header + line(1, "stepwell/start", "") + line(1, "sum", "1") + line(1, "batch", "1") + line(3, "sum", "6") + line(3, "batch", "3"));
  CHECK(sw::test::event_files_in(directory.path()) == (has_events ? 1 : 0));
  if (has_events) { CHECK(sw::test::scalars_in(directory.path(), "sum").size() == 2); }
}

TEST_CASE("D-5 after a recovery a metric file says which lines did not happen", "[hooks][metrics]") {
  const sw::test::log_capture log;
  const temporary_directory directory;
  const auto clock = std::make_shared<sw::manual_clock>();
  adding_model model;
  model.before = [fails = true](std::int64_t batch) mutable {
    if (batch == 3 && std::exchange(fails, false)) { throw sw::aborted_error("once"); }
  };
  sw::monitored_session session(sw::training_options{.retry = {.initial_backoff = 0}, .clock = clock}, model,
                                sw::summary_saver_hook{sw::summary_saver_options{.metrics = {csv_in(directory, clock)}, .save_steps = 1},
                                                       sw::summary::scalar("sum", &adding_model::sum)});
  for (const std::int64_t batch : {1, 2, 3}) { session.run(batch); }
  session.close();
  CHECK(file_text(directory / "metrics.csv") == header + line(1, "stepwell/start", "") + line(1, "sum", "1") + line(2, "sum", "3") +
                                                    line(1, "stepwell/start", "") + line(1, "sum", "3"));
}

TEST_CASE("a failed write of metrics comes out at a boundary, or when the session closes", "[hooks][metrics]") {
  const sw::test::log_capture log;
  const temporary_directory directory;
  const auto clock = std::make_shared<sw::manual_clock>();
  const auto files = std::make_shared<sw::test::fault_file_system>();
  const auto csv = csv_in(directory, clock, files);
  adding_model model;
  sw::monitored_session session(
      sw::training_options{.clock = clock}, model,
      sw::summary_saver_hook{sw::summary_saver_options{.metrics = {csv}, .save_steps = 1}, sw::summary::scalar("sum", &adding_model::sum)});
  files->inject({.kind = sw::test::operation::write, .errno_value = ENOSPC, .from_then_on = true});
  session.run(std::int64_t{1});
  CHECK_THROWS_AS(session.close(), sw::resource_exhausted_error);
}

TEST_CASE("a training session writes what goes into its event files to metric files, over restarts", "[training][metrics]") {
  const sw::test::log_capture log;
  const temporary_directory directory;
  const auto clock = std::make_shared<sw::manual_clock>();
  for (int run = 0; run < 2; ++run) {
    adding_model model;
    auto session = sw::monitored_training_session(model,
                                                  {.checkpoint_dir = directory / "run",
                                                   .metrics = {csv_in(directory, clock)},
                                                   .saves = {.save_steps = 100},
                                                   .summaries = {.save_steps = 1},
                                                   .clock = clock},
                                                  sw::summaries([](sw::summary::writer& out, const auto& result, const auto&,
                                                                   std::int64_t step) { out.add_scalar("loss", result.loss, step); }));
    for (int i = 0; i < 2; ++i) { session.run(std::int64_t{1}); }
    session.close();
  }
  CHECK(file_text(directory / "metrics.csv") == header + line(1, "stepwell/start", "") + line(1, "loss", "1") + line(2, "loss", "2") +
                                                    line(3, "stepwell/start", "") + line(3, "loss", "3") + line(4, "loss", "4"));
}

TEST_CASE("metrics of a training session without event files are refused", "[training][metrics]") {
  const temporary_directory directory;
  adding_model model;
  CHECK_THROWS_WITH(sw::monitored_training_session(model, {.metrics = {csv_in(directory, sw::system_clock())}}),
                    ContainsSubstring("summary_dir"));
}

TEST_CASE("metric files of a session have exact doubles and 64-bit integers, whatever writes them", "[training][metrics]") {
  struct exact_model {
    struct result {
      double loss;
      std::int64_t samples;
      std::uint64_t seed;
      std::optional<double> score;
    };
    std::int64_t done = 0;
    double rate = 0;
    result step() {
      ++done;
      return {0.1 + 1e-9, 16777216 + done, std::numeric_limits<std::uint64_t>::max(), 0.1 + 1e-10};
    }
    sw::variable_list variables() { return sw::variables({{"done", done}}); }
  };
  const sw::test::log_capture log;
  const temporary_directory directory;
  const auto clock = std::make_shared<sw::manual_clock>();
  exact_model model;
  auto session = sw::monitored_training_session(
      model,
      {.summary_dir = directory.path(),
       .metrics = {csv_in(directory, clock)},
       .summaries = {.save_steps = 1},
       .step_counter = {.every_n_steps = 1},
       .clock = clock},
      sw::summaries(sw::summary::scalar("loss", &exact_model::result::loss), sw::summary::scalar("samples", &exact_model::result::samples),
                    sw::summary::scalar("seed", &exact_model::result::seed), sw::summary::scalar("score", &exact_model::result::score),
                    sw::summary::scalar("rate", &exact_model::rate)),
      sw::scheduled(&exact_model::rate, sw::schedules::constant(0.1 + 1e-11)),
      sw::evaluate_every(1, [](const exact_model&) { return 16777217.5; }, sw::measure("error", [](double error) { return error; })));
  for (int i = 0; i < 2; ++i) {
    session.run();
    clock->advance(std::chrono::seconds(3));
  }
  session.close();
  const auto text = file_text(directory / "metrics.csv");
  for (const auto* const line :
       {",1,loss,0.100000001\n", ",1,samples,16777217\n", ",1,seed,18446744073709551615\n", ",1,score,0.1000000001\n",
        ",2,rate,0.10000000001\n", ",1,evaluation/error,16777217.5\n", ",2,global_step/sec,0.3333333333333333\n"}) {
    CHECK_THAT(text, ContainsSubstring(line));
  }
}
