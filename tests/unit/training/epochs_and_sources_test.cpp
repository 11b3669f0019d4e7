// SPDX-License-Identifier: Apache-2.0
//
// Resumed runs over sources with epochs, sources that are read ahead, and other data than before.
#include "support/catch.hpp"
#include "support/log_capture.hpp"
#include "support/temporary_directory.hpp"
#include "unit/training/mixing_rig.hpp"

#include <stepwell/checkpoint/checkpoint_reader.hpp>
#include <stepwell/checkpoint/find_checkpoints.hpp>
#include <stepwell/data/prefetch.hpp>
#include <stepwell/data/shuffled_batches.hpp>
#include <stepwell/data/source.hpp>
#include <stepwell/hooks/function_hooks.hpp>
#include <stepwell/hooks/stop_hooks.hpp>
#include <stepwell/metrics/metrics.hpp>
#include <stepwell/training/monitored_training_session.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace sw = stepwell;
namespace data = stepwell::data;
using namespace sw::test;

namespace {

/// Trains like a new process. At `killed_at` an exception leaves the session, which then saves nothing.
std::uint64_t train(const std::string& directory, auto source, std::int64_t last_step, std::int64_t killed_at = 0) {
  mixing_model model;
  train_blocking(model, saving_in(directory), source, killed_at, sw::stop_at_step(last_step));
  return model.mixed;
}

struct data_rig {
  temporary_directory directory;
  mixing_model model;

  /// Does three more steps, and returns the number of warnings.
  std::size_t steps_over(auto source, sw::other_data_policy policy = sw::other_data_policy::warn) {
    log.reset();  // captures do not nest
    log = std::make_unique<log_capture>();
    auto session = sw::monitored_training_session(
        model, {.checkpoint_dir = directory.path(), .step_counter = {.every_n_steps = sw::none}, .on_other_data = policy});
    const auto last = session.global_step() + 3;
    for (const auto& step : session.steps(source)) {
      if (step.global_step == last) { break; }
    }
    session.close();
    return log->count(sw::log_level::warning);
  }
  std::unique_ptr<log_capture> log;
};

}  // namespace

TEST_CASE("a run over a source read ahead on threads that is killed at any step resumes bit by bit", "[training][prefetch]") {
  const auto train_squares = [](const std::string& directory, std::int64_t killed_at) {
    return train(directory, squares(), 40, killed_at);
  };
  const temporary_directory whole;
  check_resumed_after_kills(train_squares, train_squares(whole.path(), 0), 40, 2);
}

TEST_CASE("a source read ahead and the same source without threads resume from each other", "[training][prefetch]") {
  const temporary_directory directory;
  const temporary_directory other;
  train(directory.path(), shuffled(23, 5), 7);
  const auto ahead = train(directory.path(), data::prefetch(shuffled(23, 5), {.threads = 2}), 20);
  CHECK(ahead == train(other.path(), shuffled(23, 5), 20));
}

TEST_CASE("a run with epochs that is killed resumes within its epoch and ends after the last one", "[training][epochs]") {
  const auto train_epochs = [](const std::string& directory, std::int64_t killed_at) {
    return train(directory, data::shuffled_batches(numbers(23), {.batch_size = 4, .seed = 5, .epochs = 4}), 1000, killed_at);
  };
  const temporary_directory whole;
  const auto expected = train_epochs(whole.path(), 0);
  check_resumed_after_kills(train_epochs, expected, 24);
  CHECK(train_epochs(whole.path(), 0) == expected);  // nothing is left to do
}

TEST_CASE("stop_at_epoch_hook counts epochs over restarts, and a run at its end does no step", "[training][epochs]") {
  const temporary_directory directory;
  const auto steps_until = [&](std::int64_t last_epoch, std::int64_t leaves_at = 0) {
    mixing_model model;
    auto session = sw::monitored_training_session(model, {.checkpoint_dir = directory.path()}, sw::stop_at_epoch(last_epoch));
    auto batches = shuffled(23, 5);
    for (const auto& step : session.steps(batches)) {
      if (step.global_step == leaves_at) { break; }
    }
    session.close();
    return session.global_step();
  };
  CHECK(steps_until(3, 8) == 8);
  CHECK(steps_until(3) == 18);
  CHECK(steps_until(3) == 18);
  CHECK(steps_until(4) == 24);
}

TEST_CASE("the state of every_n_steps and every_epoch is saved and restored", "[training][function_hooks]") {
  const temporary_directory directory;
  std::int64_t calls = 0;
  std::int64_t epochs = 0;
  const auto six_steps = [&] {
    calls = epochs = -100;  // a new process would have other values
    mixing_model model;
    const auto begin_at = [](std::int64_t& count) {
      if (count < 0) { count = 0; }
    };
    auto session = sw::monitored_training_session(
        model, {.checkpoint_dir = directory.path()},
        sw::every_n_steps(
            2, [&] { begin_at(calls), ++calls; }, sw::saved_state{"calls", [&] { return sw::variables({{"n", calls}}); }}),
        sw::every_epoch([&] { begin_at(epochs), ++epochs; }, sw::saved_state{"epochs", [&] { return sw::variables({{"n", epochs}}); }}));
    auto batches = shuffled(8, 1);
    const auto last = session.global_step() + 6;
    for (const auto& step : session.steps(batches)) {
      if (step.global_step == last) { break; }
    }
    session.close();
  };
  six_steps();
  CHECK(calls == 3);
  CHECK(epochs == 3);
  six_steps();
  CHECK(calls == 6);
  CHECK(epochs == 6);
}

TEST_CASE("a counter is a seekable source for a model without data", "[training][counter]") {
  struct drawing_model {
    std::uint64_t last = 0;
    std::uint64_t sum = 0;
    void step(std::uint64_t number) { sum += sw::random_bits(7, last = number, 0); }
    sw::variable_list variables() { return sw::variables({{"last", last}, {"sum", sum}}); }
  };
  const temporary_directory directory;
  const auto train_to = [](const std::string& where, std::uint64_t count) {
    drawing_model model;
    auto session = sw::monitored_training_session(model, {.checkpoint_dir = where});
    const auto loop = session.run_all(data::counter({.count = count}));
    session.close();
    return std::pair(loop.steps, model.sum);
  };
  const temporary_directory other;
  CHECK(train_to(directory.path(), 5).first == 5);
  const auto resumed = train_to(directory.path(), 12);
  CHECK(resumed.first == 7);
  CHECK(resumed.second == train_to(other.path(), 12).second);
}

TEST_CASE("the fingerprint of a source is saved with its position", "[training][fingerprint]") {
  data_rig rig;
  CHECK(rig.steps_over(shuffled(23, 5, "train")) == 0);
  const sw::checkpoint_reader saved(*sw::latest_checkpoint(rig.directory.path()));
  CHECK(saved.read("stepwell/source/train/fingerprint").strings().front() == "23 examples, seed 5");
  CHECK(rig.steps_over(shuffled(23, 5, "train")) == 0);
  CHECK_FALSE(rig.log->contains(sw::log_level::info, "does not use"));
}

TEST_CASE("a resume with another dataset or another seed warns, once", "[training][fingerprint]") {
  data_rig rig;
  rig.steps_over(shuffled(23, 5));
  CHECK(rig.steps_over(shuffled(22, 5)) == 1);
  CHECK(rig.log->contains(sw::log_level::warning, "other data (22 examples, seed 5) than the one of the checkpoint (23 examples, seed 5)"));
  CHECK(rig.steps_over(shuffled(22, 5)) == 0);  // the new fingerprint was saved
  CHECK(rig.steps_over(shuffled(22, 6)) == 1);
}

TEST_CASE("a resume with other data fails if asked, before a step", "[training][fingerprint]") {
  data_rig rig;
  rig.steps_over(shuffled(23, 5));
  const auto before = rig.model.mixed;
  CHECK_THROWS_AS(rig.steps_over(shuffled(23, 6), sw::other_data_policy::fail), sw::failed_precondition_error);
  CHECK(rig.model.mixed == before);
  CHECK(rig.steps_over(shuffled(23, 5), sw::other_data_policy::fail) == 0);
}

TEST_CASE("a source that has another name than in the checkpoint is noticed", "[training][fingerprint]") {
  data_rig rig;
  rig.steps_over(shuffled(23, 5, "train"));
  CHECK(rig.steps_over(shuffled(23, 5, "training")) == 1);
  CHECK(rig.log->contains(sw::log_level::warning, "no position of the source \"training\", but one of \"train\" with the same data"));
}

TEST_CASE("sources with and without a fingerprint resume from each other", "[training][fingerprint]") {
  struct plain_source {
    std::uint64_t next = 0;
    std::vector<std::uint64_t> batch = {1};
    const std::vector<std::uint64_t>* peek() const { return &batch; }
    void advance() { ++next; }
    std::uint64_t position() const { return next; }
    void seek(std::uint64_t position) { next = position; }
  };
  data_rig rig;
  rig.steps_over(plain_source());
  CHECK(rig.steps_over(shuffled(23, 5)) == 0);
  CHECK(rig.steps_over(plain_source()) == 0);
  const sw::checkpoint_reader saved(*sw::latest_checkpoint(rig.directory.path()));
  CHECK_FALSE(saved.contains("stepwell/source/default/fingerprint"));
}

TEST_CASE("a recovery rewinds a source that is read ahead", "[training][prefetch]") {
  const log_capture log;
  struct failing_model : mixing_model {
    int failures = 3;
    void step(const std::vector<std::uint64_t>& batch) {
      mixing_model::step(batch);
      if (mixed % 7 == 0 && failures-- > 0) { throw sw::unavailable_error("the device is away"); }
    }
  };
  const temporary_directory whole;
  const temporary_directory directory;
  failing_model model;
  auto session = sw::monitored_training_session(model,
                                                {.checkpoint_dir = directory.path(),
                                                 .saves = {.save_steps = 5},
                                                 .step_counter = {.every_n_steps = sw::none},
                                                 .retry = {.initial_backoff = 0}},
                                                sw::stop_at_step(40));
  session.run_all(squares());
  session.close();
  CHECK(session.metrics().recoveries == 3);
  CHECK(model.mixed == train(whole.path(), squares(), 40));
}

TEST_CASE("a metric among the variables of a model continues after a restart", "[training][metrics]") {
  struct measured_model {
    sw::metrics::variance spread;
    sw::metrics::windowed_mean recent{3};
    void step(std::uint64_t number) {
      spread.update(static_cast<double>(number));
      recent.update(static_cast<double>(number));
    }
    sw::variable_list variables() { return sw::variables({{"spread", spread.variables()}, {"recent", recent.variables()}}); }
  };
  const temporary_directory directory;
  for (const std::uint64_t count : {4U, 10U}) {
    measured_model model;
    auto session = sw::monitored_training_session(model, {.checkpoint_dir = directory.path()});
    session.run_all(data::counter({.count = count}));
    session.close();
    if (count == 10) {
      CHECK(model.spread.count() == 10);
      CHECK(model.spread.value() == Approx(8.25));  // of 0 to 9
      CHECK(model.recent.value() == 8);
    }
  }
}
