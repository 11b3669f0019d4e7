// SPDX-License-Identifier: Apache-2.0
//
// Tests of the hooks that the options of a training session create, their output directories and their cadences.
#include <stepwell/training/monitored_training_session.hpp>

#include "support/catch.hpp"
#include "support/log_capture.hpp"
#include "unit/hooks/event_reading.hpp"
#include "unit/training/training_rig.hpp"

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

namespace sw = stepwell;
using namespace std::chrono_literals;
using namespace sw::test;
using steps = std::vector<std::int64_t>;

namespace {

/// Trains three steps. All outputs for which there is a directory are due in every run, and the clock moves one second a run.
void run_three(adding_model& model, const std::string& checkpoint_dir, const std::string& summary_dir) {
  const auto clock = std::make_shared<sw::manual_clock>();
  auto session = sw::monitored_training_session(model,
                                                {.checkpoint_dir = checkpoint_dir,
                                                 .summary_dir = summary_dir,
                                                 .saves = {.save_steps = checkpoint_dir.empty() ? 0 : 1},
                                                 .summaries = {.save_steps = 1},
                                                 .step_counter = {.every_n_steps = 1},
                                                 .clock = clock},
                                                sw::summaries([](sw::summary::writer& out, const auto& result, const auto&,
                                                                 std::int64_t step) { out.add_scalar("loss", result.loss, step); }));
  for (std::int64_t batch = 1; batch <= 3; ++batch) {
    clock->advance(1s);
    session.run(batch);
  }
  session.close();
}

}  // namespace

TEST_CASE("CREATE-1 options that are not given have TensorFlow's defaults", "[training]") {
  const adding_options said_nothing;
  CHECK(said_nothing.checkpoint_dir.empty());
  CHECK(said_nothing.summary_dir.empty());
  CHECK(said_nothing.saves.save_secs.is_default());
  CHECK(said_nothing.saves.save_steps.is_default());
  CHECK(said_nothing.summaries.save_secs.is_default());
  CHECK(said_nothing.summaries.save_steps.is_default());
  CHECK(said_nothing.stop_grace_period_secs.count() == 120);

  const temporary_directory directory;
  log_capture log;
  const auto clock = std::make_shared<sw::manual_clock>();
  adding_model model;
  auto session = sw::monitored_training_session(model, {.summary_dir = directory.path(), .clock = clock});
  for (std::int64_t batch = 1; batch <= 201; ++batch) {
    clock->advance(1s);
    session.run(batch);
  }
  session.close();
  const auto rates = scalars_in(directory.path(), "global_step/sec");  // every 100 steps; the first run starts the measurement
  CHECK(rates == std::map<std::int64_t, float>{{101, 1.0f}, {201, 1.0f}});
}

TEST_CASE("CREATE-2, D-8 summaries are written every 100 steps, unless one of the two periods is given", "[training]") {
  struct row {
    sw::setting<std::int64_t> steps;
    sw::setting<sw::seconds_value> secs;
    std::optional<std::int64_t> steps_become;
    std::optional<double> secs_become;
  };
  const sw::setting<std::int64_t> no_steps;
  const sw::setting<sw::seconds_value> no_secs;
  const std::vector<row> rows = {{no_steps, no_secs, 100, {}}, {7, no_secs, 7, {}},  {no_steps, 2.5, {}, 2.5}, {sw::none, 2.5, {}, 2.5},
                                 {7, sw::none, 7, {}},         {0, 2.5, {}, 2.5},    {7, 2.5, {}, 2.5},        {no_steps, sw::none, {}, {}},
                                 {sw::none, no_secs, {}, {}},  {0, no_secs, {}, {}}, {no_steps, 0, {}, {}},    {sw::none, 0, {}, {}}};
  for (const auto& [steps, secs, steps_become, secs_become] : rows) {
    log_capture log;
    const adding_options said{.summary_dir = "anywhere", .summaries = {.save_steps = steps, .save_secs = secs}};
    const auto made = sw::detail::default_hooks::work_of_summaries(said);
    REQUIRE((made != nullptr) == (steps_become || secs_become));
    const bool both = steps.enabled() && secs.enabled();
    CHECK(log.contains(sw::log_level::warning, "both summaries.save_secs and summaries.save_steps") == both);
    if (!made) { continue; }
    CHECK(made->period().every_steps == steps_become);
    CHECK(made->period().every_secs.has_value() == secs_become.has_value());
    if (secs_become) { CHECK(made->period().every_secs->count() == *secs_become); }
  }
}

TEST_CASE("a worker may be given metrics and no place for event files, since it writes none", "[training]") {
  const auto file = std::shared_ptr<sw::summary::metric_writer>();
  adding_options of_chief{.metrics = {file}};
  CHECK_THROWS_AS(sw::detail::complete(of_chief, std::nullopt, false), sw::invalid_argument_error);
  adding_options of_worker{.master = "local:metrics", .is_chief = false, .metrics = {file}};
  CHECK_NOTHROW(sw::detail::complete(of_worker, std::nullopt, false));
  CHECK_FALSE(sw::detail::default_hooks::saver(of_worker, false).is_on());
}

TEST_CASE("CREATE-3 a checkpoint is saved every 600 seconds, unless one of the two periods is given", "[training]") {
  const temporary_directory directory;
  const auto clock = std::make_shared<sw::manual_clock>();
  adding_model model;
  auto session = sw::monitored_training_session(model, {.checkpoint_dir = directory.path(), .clock = clock});
  const auto saved_after = [&](std::chrono::seconds pause, int runs) {
    clock->advance(pause);
    for (int i = 0; i < runs; ++i) { session.run(std::int64_t{1}); }
    session.hook<sw::checkpoint_saver_hook>().saver().drain();
    return steps_on_disk(directory);
  };
  CHECK(saved_after(0s, 150) == steps{0});
  CHECK(saved_after(599s, 1) == steps{0});
  CHECK(saved_after(1s, 1) == steps{0, 152});
  CHECK(saved_after(599s, 1) == steps{0, 152});
  CHECK(saved_after(1s, 1) == steps{0, 152, 154});
}

TEST_CASE("CREATE-9 event files are beside the checkpoints, unless a summary_dir is given", "[training]") {
  const temporary_directory directory;
  adding_model model;
  run_three(model, directory / "both", "");
  CHECK(event_files_in(directory / "both") == 1);
  CHECK(scalars_in(directory / "both", "loss").size() == 3);
  CHECK(sw::latest_checkpoint(directory / "both") == directory / "both/model.ckpt-3");
  run_three(model, directory / "checkpoints", directory / "events");
  CHECK(event_files_in(directory / "checkpoints") == 0);
  CHECK(sw::latest_checkpoint(directory / "checkpoints") == directory / "checkpoints/model.ckpt-3");
  CHECK(event_files_in(directory / "events") == 1);
  CHECK(scalars_in(directory / "events", "loss").size() == 3);
}

TEST_CASE("CREATE-10 with a summary_dir alone steps are counted and summed up, and nothing is saved or restored", "[training]") {
  const temporary_directory directory;
  for (const std::size_t round : {1U, 2U}) {
    adding_model model;
    run_three(model, "", directory.path());
    CHECK(model.sum == 6);  // it started without a checkpoint
    CHECK(event_files_in(directory.path()) == round);
  }
  CHECK(scalars_in(directory.path(), "loss").size() == 3);
  CHECK(scalars_in(directory.path(), "global_step/sec").size() == 2);
  CHECK(steps_on_disk(directory).empty());
  CHECK_FALSE(std::filesystem::exists(directory / "checkpoint"));
}

TEST_CASE("HOOK-STOP-6 a run restored at step 3 does what is left, or so many more", "[training]") {
  const temporary_directory directory;
  adding_model model;
  const auto go_on = [&](sw::stop_at_step_options until) {
    auto session = sw::monitored_training_session(model, {.checkpoint_dir = directory.path()}, sw::stop_at_step_hook{until});
    int runs = 0;
    for (; !session.should_stop(); ++runs) { session.run(std::int64_t{1}); }
    session.close();
    return runs;
  };
  train_until(model, directory.path(), 3);
  CHECK(go_on({.last_step = 5}) == 2);
  CHECK(go_on({.num_steps = 4}) == 4);
  CHECK(sw::latest_checkpoint(directory.path()) == directory / "model.ckpt-9");
}

namespace {

struct sometimes_model {
  struct result {
    float loss = 0;
    std::optional<float> error;
  };
  float weight = 0;
  int done = 0;

  result step() {
    ++done;
    weight += 1;
    return {1.0f / static_cast<float>(done), done % 3 == 0 ? std::optional(static_cast<float>(done)) : std::nullopt};
  }
  sw::variable_list variables() { return sw::variables({{"weight", weight}, {"done", done}}); }
};

}  // namespace

TEST_CASE("the argument summaries writes values of the result and of the model, without a hook", "[training]") {
  const temporary_directory directory;
  sometimes_model model;
  auto session = sw::monitored_training_session(
      model, {.summary_dir = directory.path(), .summaries = {.save_steps = 2}},
      sw::summaries(sw::summary::scalar("loss", &sometimes_model::result::loss), sw::summary::scalar("weight", &sometimes_model::weight),
                    sw::summary::scalar("both", [](const auto& result, const auto& m) { return result.loss * m.weight; }),
                    sw::summary::scalar("error", &sometimes_model::result::error)));
  for (int i = 0; i < 4; ++i) { session.run(); }
  session.close();
  CHECK(scalars_in(directory.path(), "weight") == std::map<std::int64_t, float>{{1, 1.0f}, {3, 3.0f}, {4, 4.0f}});
  CHECK(scalars_in(directory.path(), "both") == std::map<std::int64_t, float>{{1, 1.0f}, {3, 1.0f}});
  CHECK(scalars_in(directory.path(), "loss").size() == 3);
  CHECK(scalars_in(directory.path(), "error") == std::map<std::int64_t, float>{{3, 3.0f}});
}

TEST_CASE("summaries that have no value are written by the next run that has one", "[training]") {
  const temporary_directory directory;
  sometimes_model model;
  auto session = sw::monitored_training_session(model, {.summary_dir = directory.path(), .summaries = {.save_steps = 1000}},
                                                sw::summaries(sw::summary::scalar("error", &sometimes_model::result::error)));
  for (int i = 0; i < 7; ++i) { session.run(); }
  session.close();
  CHECK(scalars_in(directory.path(), "error") == std::map<std::int64_t, float>{{3, 3.0f}});
}

TEST_CASE("summaries need a directory for event files", "[training]") {
  sometimes_model model;
  CHECK_THROWS_AS(sw::monitored_training_session(model, {}, sw::summaries(sw::summary::scalar("loss", &sometimes_model::result::loss))),
                  sw::invalid_argument_error);
}

TEST_CASE("log_every_secs = 0 logs each durable checkpoint and each rate", "[training]") {
  const temporary_directory directory;
  const log_capture log;
  const auto clock = std::make_shared<sw::manual_clock>();
  adding_model model;
  auto session = sw::monitored_training_session(model, {.checkpoint_dir = directory.path(),
                                                        .saves = {.save_steps = 1, .log_every_secs = 0},
                                                        .step_counter = {.every_n_steps = 1, .log_every_secs = 0},
                                                        .clock = clock});
  for (std::int64_t batch = 1; batch <= 5; ++batch) {
    clock->advance(1s);
    session.run(batch);
    session.checkpoint_now();  // waits until the checkpoint is durable
    CHECK(log.contains(sw::log_level::info, "/model.ckpt-" + std::to_string(batch) + ", "));
  }
  session.close();
  std::size_t rates = 0;
  for (const auto& message : log.messages()) { rates += message.text.find("global_step/sec: 1") != std::string::npos; }
  CHECK(rates == 4);  // the first run only starts the clock
}

TEST_CASE("durable checkpoints and rates are logged with the name of the session, at most once in 10 s", "[training]") {
  const temporary_directory directory;
  const log_capture log;
  const auto clock = std::make_shared<sw::manual_clock>();
  adding_model model;
  auto session = sw::monitored_training_session(model, {.name = "trial-7",
                                                        .checkpoint_dir = directory.path(),
                                                        .saves = {.save_steps = 1},
                                                        .step_counter = {.every_n_steps = 1},
                                                        .clock = clock});
  for (std::int64_t batch = 1; batch <= 30; ++batch) {
    clock->advance(1s);
    session.run(batch);
  }
  session.close();
  std::size_t saved = 0;
  std::size_t rates = 0;
  for (const auto& message : log.messages()) {
    CHECK(message.text.starts_with("[trial-7] "));
    saved += message.text.find("] saved " + directory.path() + "/model.ckpt-") != std::string::npos;
    rates += message.text.find("] global_step/sec: 1") != std::string::npos;
  }
  CHECK(saved >= 2);
  CHECK(saved <= 5);
  CHECK(rates == 3);
  CHECK(log.contains(sw::log_level::info, "saved " + directory.path() + "/model.ckpt-30, "));
  CHECK(log.contains(sw::log_level::info, " B in "));
}

TEST_CASE("the argument summaries evaluates each value once in a due step", "[training]") {
  const temporary_directory directory;
  const log_capture log;
  adding_model model;
  int of_first = 0;
  int of_second = 0;
  int of_missing = 0;
  const bool has_function = GENERATE(false, true);
  {
    adding_options options{.summary_dir = directory.path(), .summaries = {.save_steps = 2}};
    auto values = sw::summaries(sw::summary::scalar("missing",
                                                    [&](const adding_model::result&) {
                                                      ++of_missing;
                                                      return std::optional<float>();
                                                    }),
                                sw::summary::scalar("first", [&](const adding_model::result& result) { return ++of_first, result.loss; }),
                                sw::summary::scalar("second", [&](const adding_model& of) { return ++of_second, of.sum; }));
    const auto run = [](auto session) {
      for (std::int64_t batch = 1; batch <= 4; ++batch) { session.run(batch); }  // due in the steps 1 and 3
      session.close();
    };
    const auto nothing = [](sw::summary::writer&, const auto&, const auto&, std::int64_t) {};
    if (has_function) {
      run(sw::monitored_training_session(model, options, sw::summaries(nothing), std::move(values)));
    } else {
      run(sw::monitored_training_session(model, options, std::move(values)));
    }
  }
  CHECK(of_missing == 2);
  CHECK(of_first == 2);
  CHECK(of_second == 2);
  CHECK(scalars_in(directory.path(), "first").size() == 2);
}
