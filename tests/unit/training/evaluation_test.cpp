// SPDX-License-Identifier: Apache-2.0
#include "support/beside_retention.hpp"
#include "support/catch.hpp"
#include "support/checkpoint_files.hpp"
#include "support/leaping_clock.hpp"
#include "support/log_capture.hpp"
#include "training_rig.hpp"

#include <stepwell/base/error.hpp>
#include <stepwell/checkpoint/detail/checkpoint_writer.hpp>
#include <stepwell/checkpoint/find_checkpoints.hpp>
#include <stepwell/data/source.hpp>
#include <stepwell/hooks/ema_hook.hpp>
#include <stepwell/hooks/function_hooks.hpp>
#include <stepwell/protocol/detail/boundary_work.hpp>
#include <stepwell/training/evaluation.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace sw = stepwell;
using sw::test::adding_model;
using sw::test::temporary_directory;

namespace {

/// A model that measures the difference between batches and the trained value.
struct measuring_model {
  struct result {
    float error;
  };
  float sum = 0;          // restored from the checkpoint
  float total_error = 0;  // computed by the evaluation
  int measured = 0;
  int failures_at_11 = 0;

  result step(const std::int64_t& batch) {
    if (batch == 11 && failures_at_11-- > 0) { throw sw::unavailable_error("a disk is slow"); }
    if (batch < 0) { throw sw::data_loss_error("a broken picture"); }
    ++measured;
    total_error += static_cast<float>(batch) - sum;
    return {static_cast<float>(batch) - sum};
  }
  sw::variable_list variables() { return sw::variables({{"sum", sum}}); }
};

float mean_error(const measuring_model& model) { return model.total_error / static_cast<float>(model.measured); }

/// A directory with checkpoints of an adding_model at steps 0, 2 and 4, where `sum` is 0, 3 and 10.
struct trained_directory {
  temporary_directory directory;
  sw::test::log_capture log;
  std::shared_ptr<sw::test::leaping_clock> clock = std::make_shared<sw::test::leaping_clock>();

  trained_directory() {
    adding_model model;
    sw::test::train_until(model, directory.path(), 4);
    log.clear();
  }
  [[nodiscard]] std::string prefix(std::int64_t step) const { return directory / "model.ckpt-" + std::to_string(step); }
};

/// A model with a variable of the checkpoints of a busy_directory.
struct weights_model {
  std::vector<float> weights = std::vector<float>(100);
  int step() { return 0; }
  sw::variable_list variables() { return sw::variables({{"layer/weights", weights}}); }
};

auto some_batches() { return sw::data::source(std::vector<std::int64_t>{10, 11, 12}); }

/// A hook that records each run and requests a save of it.
struct saving_hook : sw::boundary_work {
  int saved = 0;
  int ends = 0;
  int errors = 0;
  std::vector<std::int64_t> steps = {};
  bool try_save(const sw::boundary_state&) override {
    ++saved;
    return true;
  }
  void after_run(auto& context, const auto&) {
    steps.push_back(context.global_step());
    context.request_save(*this);
  }
  void on_error(auto&, const std::exception_ptr&) { ++errors; }
  void end(auto&) { ++ends; }
};

}  // namespace

TEST_CASE("an evaluation restores a checkpoint, steps over its data, and gives final values", "[training][evaluation]") {
  const trained_directory at;
  measuring_model model;
  const auto found =
      sw::evaluate_once(model, at.prefix(2), some_batches(), {}, sw::final_ops_hook{&mean_error, &measuring_model::measured});
  CHECK(model.sum == 3);
  CHECK(found.checkpoint_path == at.prefix(2));
  CHECK(found.global_step == 2);
  CHECK(found.evals == 3);
  CHECK(found.ended.cause == sw::stop_cause::end_of_data);
  CHECK(found.final_ops_values == std::tuple(8.0f, 3));
  CHECK(at.log.contains(sw::log_level::info, "Starting evaluation of " + at.prefix(2)));
  CHECK(at.log.contains(sw::log_level::info, "Evaluation [3]"));
  CHECK(at.log.contains(sw::log_level::info, "Finished evaluation of " + at.prefix(2) + ": 3 steps"));
}

TEST_CASE("an evaluation does not warn of a source that cannot seek", "[training][evaluation]") {
  struct plain_batches {
    std::vector<std::int64_t> all{10, 11};
    std::size_t at = 0;
    std::int64_t* peek() { return at < all.size() ? &all[at] : nullptr; }
    void advance() { ++at; }
  };
  const trained_directory at;
  measuring_model model;
  CHECK(sw::evaluate_once(model, at.prefix(2), plain_batches{}).evals == 2);
  CHECK(at.log.count(sw::log_level::warning) == 0);
}

TEST_CASE("HOOK-MULTI-2 an evaluation makes the given number of steps", "[training][evaluation]") {
  const trained_directory at;
  measuring_model model;
  const auto found = sw::evaluate_once(model, at.prefix(4), some_batches(), {.num_evals = 2}, sw::final_ops_hook{mean_error});
  CHECK(found.evals == 2);
  CHECK(found.ended.cause == sw::stop_cause::last_step);
  CHECK(found.final_ops_values == std::tuple(0.5f));
  CHECK(at.log.contains(sw::log_level::info, "Evaluation [2/2]"));
  CHECK(sw::evaluate_once(model, at.prefix(4), some_batches(), {.num_evals = 0}).evals == 0);
}

TEST_CASE("RUN-5 a hook of an evaluation feeds members of the model and of the batch, which get their own values back",
          "[training][evaluation]") {
  struct picture {
    float ink = 1;
  };
  struct scaled_model {
    float sum = 0;
    float scale = 1;
    std::vector<float> seen = {};
    float step(const picture& shown) { return seen.emplace_back(scale * shown.ink); }
    sw::variable_list variables() { return sw::variables({{"sum", sum}}); }
  };
  const trained_directory at;
  scaled_model model;
  float next = 10;
  const std::vector<picture> pictures(2);
  sw::evaluate_once(model, at.prefix(2), sw::data::source(pictures), {},
                    sw::feed_fn_hook{[&] { return sw::feeds(sw::feed(&scaled_model::scale, next++), sw::feed(&picture::ink, 2)); }});
  CHECK(model.seen == std::vector<float>{20, 22});
  CHECK(model.scale == 1);
  CHECK(pictures[1].ink == 1);
}

TEST_CASE("an evaluation saves nothing and leaves the global step where training left it", "[training][evaluation]") {
  const trained_directory at;
  const auto before = sw::test::names_in(at.directory.path());
  measuring_model model;
  saving_hook hook;
  sw::evaluate_once(model, at.prefix(4), some_batches(), {}, std::ref(hook));
  CHECK(hook.steps == std::vector<std::int64_t>{4, 4, 4});
  CHECK(hook.saved == 0);
  CHECK(hook.ends == 1);
  CHECK(at.log.contains(sw::log_level::warning, "an evaluation does not save checkpoints"));
  CHECK(sw::test::names_in(at.directory.path()) == before);
}

TEST_CASE("an evaluation may share its directory with the training that holds it", "[training][evaluation]") {
  const temporary_directory directory;
  sw::test::log_capture log;
  adding_model trained;
  auto session = sw::monitored_training_session(trained, {.checkpoint_dir = directory.path(), .saves = {.save_steps = 1}});
  session.run(std::int64_t{7});
  session.hook<sw::checkpoint_saver_hook>().saver().drain();
  measuring_model model;
  sw::evaluate_once(model, *sw::latest_checkpoint(directory.path()), some_batches());
  CHECK(model.sum == 7);
  session.close();
}

TEST_CASE("the source of an evaluation starts where it is, not where training was", "[training][evaluation]") {
  const trained_directory at;  // the training used a seekable source without a name
  sw::test::named_source source;
  measuring_model model;
  sw::evaluate_once(model, at.prefix(4), source, {.num_evals = 1});
  CHECK(model.total_error == 1.0f - 10.0f);
  CHECK(source.next == 2);
}

TEST_CASE("a step that fails ends the evaluation with its error, and on_error of the hooks is called", "[training][evaluation]") {
  const trained_directory at;
  measuring_model model;
  saving_hook hook;
  CHECK_THROWS_AS(sw::evaluate_once(model, at.prefix(4), sw::data::source(std::vector<std::int64_t>{1, -1}), {}, std::ref(hook)),
                  sw::data_loss_error);
  CHECK(hook.errors == 1);
  CHECK(hook.ends == 0);
}

TEST_CASE("an evaluation repeats the batch of a transient failure, with a range and with any kind of source", "[training][evaluation]") {
  struct blind_batches {
    std::vector<std::int64_t> all{10, 11, 12};
    std::size_t at = 0;
    std::int64_t* peek() { return at < all.size() ? &all[at] : nullptr; }
    void advance() { ++at; }
  };
  const trained_directory at;
  const auto check = [&](auto&& batches) {
    measuring_model model{.failures_at_11 = 2};
    model.measured = 100;  // the user's own numbers are kept as well
    const auto found =
        sw::evaluate_once(model, at.prefix(2), batches, {.clock = at.clock}, sw::final_ops_hook{&measuring_model::total_error});
    CHECK(found.evals == 3);
    CHECK(model.measured == 103);
    CHECK(found.final_ops_values == std::tuple(7.0f + 8.0f + 9.0f));
  };
  check(std::vector<std::int64_t>{10, 11, 12});
  check(some_batches());
  check(blind_batches{});
  CHECK(at.log.contains(sw::log_level::warning, "recovery 2 of at most"));
  std::vector<float> repeated;
  measuring_model model{.failures_at_11 = 1};
  for (const auto& found : sw::evaluate_repeatedly(
           model, at.directory.path(), [] { return blind_batches{}; }, {.evaluation = {.clock = at.clock}, .max_number_of_evaluations = 1},
           sw::final_ops_hook{&measuring_model::total_error})) {
    repeated.push_back(std::get<0>(*found.final_ops_values));
  }
  CHECK(repeated == std::vector{0.0f + 1.0f + 2.0f});
}

TEST_CASE("a checkpoint that is missing, or fits no model, is an error before any step", "[training][evaluation]") {
  const trained_directory at;
  measuring_model model;
  CHECK_THROWS_AS(sw::evaluate_once(model, at.prefix(3), some_batches()), sw::not_found_error);
  sw::evaluation_options other;
  other.restore.names = {{"sum", "weights"}};
  CHECK_THROWS_AS(sw::evaluate_once(model, at.prefix(4), some_batches(), other), sw::invalid_argument_error);
  other.restore.names = {{"sum", "average"}};
  CHECK_THROWS_AS(sw::evaluate_once(model, at.prefix(4), some_batches(), other), sw::not_found_error);
  CHECK(model.measured == 0);
}

TEST_CASE("a model may need no data and count its own steps", "[training][evaluation]") {
  struct own_model {
    std::int64_t steps = -1;
    int calls = 0;
    int step() { return ++calls; }
    std::int64_t& global_step() { return steps; }
    sw::variable_list variables() { return {}; }
  };
  const trained_directory at;
  own_model model;
  const auto found = sw::evaluate_once(model, at.prefix(2), sw::no_source{}, {.num_evals = 5}, sw::final_ops_hook{&own_model::calls});
  CHECK(model.steps == 2);
  CHECK(found.final_ops_values == std::tuple(5));
}

TEST_CASE("averages of a checkpoint are evaluated in the place of what was trained", "[training][evaluation]") {
  const temporary_directory directory;
  sw::test::log_capture log;
  adding_model trained;
  auto session = sw::monitored_training_session(trained, {.checkpoint_dir = directory.path()}, sw::ema_hook{{.decay = 0.5}, trained});
  session.run(std::int64_t{8});
  session.close();
  measuring_model model;
  sw::evaluation_options options;
  options.restore.names = sw::ema_names(model.variables());
  sw::evaluate_once(model, *sw::latest_checkpoint(directory.path()), some_batches(), options);
  CHECK(model.sum == 4);
}

TEST_CASE("each new checkpoint is evaluated with the same hooks and with new data", "[training][evaluation]") {
  const trained_directory at;
  at.clock->meanwhile = [&](std::size_t wait) {
    if (wait != 2) { return; }
    adding_model model;
    sw::test::train_until(model, at.directory.path(), 6);
  };
  measuring_model model;
  saving_hook hook;
  std::vector<std::int64_t> steps;
  std::vector<float> errors;
  for (const auto& found : sw::evaluate_repeatedly(
           model, at.directory.path(), some_batches, {.evaluation = {.clock = at.clock}, .eval_interval_secs = 0, .timeout = 10},
           sw::final_ops_hook{[](measuring_model& m) { return std::exchange(m.total_error, 0.0f); }}, std::ref(hook))) {
    steps.push_back(found.global_step);
    errors.push_back(std::get<0>(found.final_ops_values.value()));
  }
  CHECK(steps == std::vector<std::int64_t>{4, 6});
  CHECK(errors == std::vector<float>{33.0f - 3 * 10, 33.0f - 3 * 21});
  CHECK(hook.ends == 2);
  CHECK(hook.steps.size() == 6);
}

TEST_CASE("repeated evaluation ends with the number wanted, or a stop", "[training][evaluation]") {
  const trained_directory at;
  measuring_model model;
  std::stop_source stop;
  int made = 0;
  sw::repeated_evaluation_options options{.evaluation = {.stop_token = stop.get_token(), .clock = at.clock}, .eval_interval_secs = 0};
  SECTION("none wanted") {
    options.max_number_of_evaluations = 0;
    for ([[maybe_unused]] const auto& found : sw::evaluate_repeatedly(model, at.directory.path(), some_batches, options)) { ++made; }
    CHECK(made == 0);
  }
  SECTION("one wanted") {
    options.max_number_of_evaluations = 1;
    for ([[maybe_unused]] const auto& found : sw::evaluate_repeatedly(model, at.directory.path(), some_batches, options)) { ++made; }
    CHECK(made == 1);
  }
  SECTION("a stop") {
    at.clock->meanwhile = [&](std::size_t) { stop.request_stop(); };
    for ([[maybe_unused]] const auto& found : sw::evaluate_repeatedly(model, at.directory.path(), some_batches, options)) { ++made; }
    CHECK(made == 1);
    CHECK(at.clock->waits.size() == 1);
  }
}

TEST_CASE("the last checkpoint of a training that was closed before the stop is evaluated in full", "[training][evaluation]") {
  const trained_directory at;
  measuring_model model;
  std::stop_source stop;
  at.clock->meanwhile = [&](std::size_t) {
    adding_model trained;
    sw::test::train_until(trained, at.directory.path(), 6);
    stop.request_stop();
  };
  std::vector<std::pair<std::int64_t, std::int64_t>> made;
  for (const auto& found :
       sw::evaluate_repeatedly(model, at.directory.path(), some_batches,
                               {.evaluation = {.clock = at.clock}, .eval_interval_secs = 0, .stop_token = stop.get_token()})) {
    made.emplace_back(found.global_step, found.evals);
  }
  CHECK(made == std::vector<std::pair<std::int64_t, std::int64_t>>{{4, 3}, {6, 3}});
}

TEST_CASE("a checkpoint that is deleted before it is opened is passed over, and one that is deleted later is evaluated",
          "[training][evaluation]") {
  const trained_directory at;
  const auto files = sw::test::fast_faulty_files();
  const bool before = GENERATE(true, false);
  const auto remove = [&] {
    for (const auto* const end : {".index", ".data-00000-of-00001"}) { std::filesystem::remove(at.prefix(4) + end); }
  };
  files->before_each([&](const sw::test::event& event) {
    if (before && event.kind == sw::test::operation::open && event.path == at.prefix(4) + ".index") { remove(); }
  });
  const auto batches = [&] {
    remove();
    return some_batches();
  };
  measuring_model model;
  int made = 0;
  for (const auto& found :
       sw::evaluate_repeatedly(model, at.directory.path(), batches,
                               {.evaluation = {.clock = at.clock, .file_system = files}, .eval_interval_secs = 0, .timeout = 3})) {
    CHECK(found.global_step == 4);
    ++made;
  }
  CHECK(made == (before ? 0 : 1));
  CHECK(at.log.count(sw::log_level::warning) == 0);
}

TEST_CASE("an evaluation beside a run that saves always finds a whole checkpoint", "[training][evaluation][beside]") {
  sw::test::log_capture log;
  sw::test::busy_directory run(1);
  run.at_each_operation([&](const auto& files) {
    weights_model seen;
    int made = 0;
    for (const auto& found : sw::evaluate_repeatedly(seen, run.path(), [] { return sw::no_source{}; },
                                                     {.evaluation = {.num_evals = 1, .file_system = files},
                                                      .eval_interval_secs = 0,
                                                      .max_number_of_evaluations = 1,
                                                      .timeout = 0})) {
      CHECK(found.global_step >= 1);
      ++made;
    }
    CHECK(made == 1);
  });
  CHECK(log.count(sw::log_level::warning) == 0);
}
