// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"
#include "support/log_capture.hpp"
#include "support/session_rig.hpp"
#include "unit/training/training_rig.hpp"

#include <stepwell/checkpoint/restore.hpp>
#include <stepwell/hooks/nan_hooks.hpp>
#include <stepwell/hooks/stop_hooks.hpp>

#include <chrono>
#include <exception>
#include <limits>
#include <memory>
#include <stdexcept>

namespace sw = stepwell;
using namespace std::chrono_literals;
using options = sw::test::adding_options;
using namespace sw::test;

namespace {

struct failing_end {
  void end(auto&) { throw std::runtime_error("no paper in the printer"); }
};

struct empty_model {
  int step() { return 0; }
  sw::variable_list variables() { return {}; }
};

}  // namespace

TEST_CASE("a fresh run saves at its start, when due, and at its end", "[training]") {
  const temporary_directory directory;
  adding_model model;
  train_until(model, directory.path(), 5);
  CHECK(steps_on_disk(directory) == std::vector<std::int64_t>{0, 2, 4, 5});
  CHECK(sw::latest_checkpoint(directory.path()) == directory.path() + "/model.ckpt-5");
  const sw::checkpoint_reader last(directory.path() + "/model.ckpt-5");
  CHECK(last.read("global_step").as<std::int64_t>()[0] == 5);
  CHECK(last.read("sum").as<float>()[0] == 15);
  CHECK(last.read("stepwell/source/default/position").as<std::int64_t>()[0] == 5);
}

TEST_CASE("the options may be left out before the hooks", "[training]") {
  counting_model model;
  auto session = sw::monitored_training_session(model, sw::stop_at_step(3));
  session.run_all();
  CHECK(session.global_step() == 3);
}

TEST_CASE("a model without variables trains and saves nothing: the log says so once, if the session saves", "[training]") {
  const temporary_directory directory;
  const log_capture log;
  empty_model model;
  for (const bool saves : {false, true}) {
    sw::training_options given;
    if (saves) { given = {.checkpoint_dir = directory.path(), .saves = {.save_steps = 1}}; }
    auto session = sw::monitored_training_session(model, given, sw::stop_at_step(3));
    session.run_all();
    session.close();
    CHECK(log.count(sw::log_level::warning) == (saves ? 1 : 0));
  }
  CHECK(log.contains(sw::log_level::warning, "the model has no variables"));
}

TEST_CASE("CREATE-10 without a directory nothing is written and nothing restored", "[training]") {
  counting_model model;
  auto session = sw::monitored_training_session(model);
  for (const auto& step : session.steps()) {
    if (step.value == 3) { break; }
  }
  session.close();
  CHECK(session.global_step() == 3);
  CHECK_FALSE(session.restored_from());
}

TEST_CASE("CREATE-4 CREATE-5, D-8 the save options in all their combinations", "[training]") {
  struct row {
    sw::setting<sw::seconds_value> secs;
    sw::setting<std::int64_t> steps;
    bool saves;
    bool warns;
  };
  const sw::setting<sw::seconds_value> no_secs;
  const sw::setting<std::int64_t> no_steps;
  const std::vector<row> rows = {{no_secs, no_steps, true, false},
                                 {no_secs, 3, true, false},
                                 {no_secs, sw::none, false, false},
                                 {no_secs, 0, false, false},
                                 {5.0, no_steps, true, false},
                                 {5.0, sw::none, true, false},
                                 {sw::none, no_steps, false, false},
                                 {0, no_steps, false, false},
                                 {sw::none, 3, true, false},
                                 {sw::none, sw::none, false, false},
                                 {5.0, 3, true, true},
                                 {0, 3, true, false},
                                 {5.0, 0, true, false}};
  for (const auto& [secs, steps, saves, warns] : rows) {
    const temporary_directory directory;
    sw::test::log_capture log;
    adding_model model;
    auto session = sw::monitored_training_session(
        model, options{.checkpoint_dir = directory.path(), .saves = {.save_secs = secs, .save_steps = steps}});
    CHECK(session.hook<sw::checkpoint_saver_hook>().is_on() == saves);
    CHECK(log.contains(sw::log_level::warning, "both saves.save_secs and saves.save_steps") == warns);
    session.close();
  }
}

TEST_CASE("D-31 a negative count or duration is refused by name", "[training]") {
  const temporary_directory directory;
  adding_model model;
  const auto refused = [&](auto change, const std::string& name) {
    options given{.checkpoint_dir = directory.path()};
    change(given);
    CHECK_THROWS_AS(sw::monitored_training_session(model, given), sw::invalid_argument_error);
    CHECK_THROWS_WITH(sw::monitored_training_session(model, given), ContainsSubstring(name + " is -3; it cannot be negative"));
  };
  refused([](auto& given) { given.saves.save_steps = -3; }, "saves.save_steps");
  refused([](auto& given) { given.saves.save_secs = -3; }, "saves.save_secs");
  refused([](auto& given) { given.summaries.save_steps = -3; }, "summaries.save_steps");
  refused([](auto& given) { given.summaries.save_secs = -3; }, "summaries.save_secs");
  refused([](auto& given) { given.step_counter.every_n_steps = -3; }, "step_counter.every_n_steps");
  refused([](auto& given) { given.saves.saver.max_to_keep = -3; }, "max_to_keep");
  refused([](auto& given) { given.saves.saver.keep_every_n_hours = -3; }, "keep_every_n_hours");
  refused([](auto& given) { given.saves.saver.on_error = sw::on_save_error::retry(-3); }, "on_error.retries");
  refused([](auto& given) { given.stop_grace_period_secs = -3; }, "stop_grace_period_secs");
  refused([](auto& given) { given.preemption_grace = -3; }, "preemption_grace");
}

TEST_CASE("seconds between checkpoints are counted by the session's clock", "[training]") {
  const temporary_directory directory;
  const auto clock = std::make_shared<sw::manual_clock>();
  adding_model model;
  auto session = sw::monitored_training_session(model, {.checkpoint_dir = directory.path(), .saves = {.save_secs = 60}, .clock = clock});
  for (std::int64_t batch = 1; batch <= 5; ++batch) {
    clock->advance(25s);
    session.run(batch);
  }
  session.hook<sw::checkpoint_saver_hook>().saver().drain();
  CHECK(steps_on_disk(directory) == std::vector<std::int64_t>{0, 3});
  session.close();
  CHECK(steps_on_disk(directory) == std::vector<std::int64_t>{0, 3, 5});
}

TEST_CASE("max_to_keep bounds what stays", "[training]") {
  const temporary_directory directory;
  adding_model model;
  auto session =
      sw::monitored_training_session(model, {.checkpoint_dir = directory.path(), .saves = {.save_steps = 1, .saver = {.max_to_keep = 2}}});
  named_source source;
  for (const auto& step : session.steps(source)) {
    if (step.global_step == 6) { break; }
  }
  session.close();
  CHECK(steps_on_disk(directory) == std::vector<std::int64_t>{5, 6});
}

TEST_CASE("two hooks that keep state under one name are refused", "[training]") {
  adding_model model;
  CHECK_THROWS_AS(sw::monitored_training_session(model, {}, counting_hook{}, counting_hook{}), sw::invalid_argument_error);
}

TEST_CASE("two savers on one directory are refused, under whatever name it goes", "[training]") {
  const temporary_directory directory;
  adding_model model;
  auto session = sw::monitored_training_session(model, {.checkpoint_dir = directory.path()});
  adding_model other;
  CHECK_THROWS_AS(sw::monitored_training_session(other, {.checkpoint_dir = directory.path()}), sw::failed_precondition_error);
  CHECK_THROWS_AS(sw::monitored_training_session(other, {.checkpoint_dir = directory.path() + "/./"}), sw::failed_precondition_error);
  session.close();
  auto next = sw::monitored_training_session(other, {.checkpoint_dir = directory.path()});  // a closed session releases the directory
  next.close();
  CHECK(session.hook<sw::checkpoint_saver_hook>().saver().latest()->step == 0);
}

TEST_CASE("HOOK-CKPT-16 listeners are called before and after each save, and may request a stop", "[training]") {
  struct listener final : sw::checkpoint_saver_listener {
    int begins = 0, before_runs = 0, afters = 0, ends = 0;
    bool ask_for_stop = false;
    void begin() override { ++begins; }
    void before_save(std::int64_t) override { ++before_runs; }
    bool after_save(const sw::saved_checkpoint&) override {
      ++afters;
      return ask_for_stop;
    }
    void end(std::int64_t) override { ++ends; }
  };
  const temporary_directory directory;
  const auto heard = std::make_shared<listener>();
  adding_model model;
  auto session =
      sw::monitored_training_session(model, {.checkpoint_dir = directory.path(), .saves = {.save_steps = 2, .listeners = {heard}}});
  session.run(std::int64_t{1});
  heard->ask_for_stop = true;
  session.run(std::int64_t{1});
  session.hook<sw::checkpoint_saver_hook>().saver().drain();
  while (!session.should_stop()) { session.run(std::int64_t{1}); }
  session.close();
  CHECK(heard->begins == 1);
  CHECK(heard->before_runs == heard->afters);
  CHECK(heard->ends == 1);
}

TEST_CASE("D-20 a hook whose end throws keeps no other from its end, nor the last checkpoint from being written", "[training]") {
  const temporary_directory directory;
  adding_model model;
  auto session = sw::monitored_training_session(model, {.checkpoint_dir = directory.path()}, failing_end{});
  session.run(std::int64_t{1});
  CHECK_THROWS_WITH(session.close(), "no paper in the printer");
  CHECK(steps_on_disk(directory) == std::vector<std::int64_t>{0, 1});
}

TEST_CASE("a model gone bad is not in the last checkpoint", "[training]") {
  const temporary_directory directory;
  sw::test::log_capture log;
  adding_model model;
  auto session = sw::monitored_training_session(model, {.checkpoint_dir = directory.path(), .saves = {.save_steps = 2}},
                                                sw::nan_tensor_hook{&adding_model::result::loss});
  session.run(std::int64_t{1});
  model.sum = std::numeric_limits<float>::infinity();
  CHECK_THROWS_AS(session.run(std::int64_t{1}), sw::nan_loss_error);
  session.close();
  CHECK(steps_on_disk(directory) == std::vector<std::int64_t>{0});
}

TEST_CASE("a session that is abandoned, or left by an exception, logs neither a warning nor an error", "[training][abandon]") {
  const bool is_abandoned = GENERATE(false, true);
  const sw::test::log_capture log;
  session_rig rig;
  auto options = rig.options();
  options.saves.save_steps = 2;
  options.summaries.save_steps = 1;
  const auto leave = [&] {
    auto session = sw::monitored_training_session(rig.model, options);
    sw::test::run_until(session, 3);
    const auto failure = std::make_exception_ptr(std::runtime_error("boom"));
    if (is_abandoned) {
      session.abandon(failure);
    } else {
      std::rethrow_exception(failure);
    }
  };
  if (is_abandoned) {
    leave();
  } else {
    CHECK_THROWS_AS(leave(), std::runtime_error);
  }
  CHECK_FALSE(log.contains(sw::log_level::warning, ""));
  CHECK_FALSE(log.contains(sw::log_level::error, ""));
}
