// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"
#include "support/log_capture.hpp"
#include "unit/training/training_rig.hpp"

#include <stepwell/checkpoint/restore.hpp>
#include <stepwell/hooks/nan_hooks.hpp>

#include <chrono>
#include <limits>
#include <memory>
#include <stdexcept>

namespace sw = stepwell;
using namespace std::chrono_literals;
using namespace sw::test;

TEST_CASE("CREATE-13 a second run continues at the state of the first one, with the position of the source", "[training]") {
  const temporary_directory directory;
  adding_model first;
  train_until(first, directory.path(), 5);
  adding_model second{.sum = 99};
  train_until(second, directory.path(), 8);
  adding_model unbroken;
  const temporary_directory other;
  train_until(unbroken, other.path(), 8);
  CHECK(second.sum == unbroken.sum);
  CHECK(second.weights == unbroken.weights);
}

TEST_CASE("D-5, D-6 the checkpoint just restored is not written again, and a run at its end does no step", "[training]") {
  const temporary_directory directory;
  adding_model model;
  train_until(model, directory.path(), 4);
  const auto before = sw::list_checkpoints(directory.path());
  adding_model again;
  train_until(again, directory.path(), 4);
  CHECK(again.sum == model.sum);  // no step was made (decision D-6)
  CHECK(sw::list_checkpoints(directory.path()) == before);
}

TEST_CASE("after a restore, a source that cannot seek causes a warning and continues where it is", "[training]") {
  const temporary_directory directory;
  adding_model model;
  train_until(model, directory.path(), 3);
  sw::test::log_capture log;
  auto session = sw::monitored_training_session(model, {.checkpoint_dir = directory.path()});
  for (int epoch = 0; epoch < 2; ++epoch) {
    blind_source source;
    for (const auto& step : session.steps(source)) {
      CHECK(step.value.batch == 1);
      break;
    }
  }
  CHECK(log.contains(sw::log_level::warning, "cannot seek"));
  CHECK(log.count(sw::log_level::warning) == 1);  // the second loop has no position to restore
}

TEST_CASE("a resumed run warns once about a source that cannot seek, if the checkpoint has no position of it", "[training]") {
  const temporary_directory directory;
  const auto steps_with_warnings = [&] {
    sw::test::log_capture log;
    adding_model model;
    auto session = sw::monitored_training_session(model, {.checkpoint_dir = directory.path()});
    for (int epoch = 0; epoch < 2; ++epoch) {
      blind_source source;
      for (const auto& step : session.steps(source)) {
        if (step.value.batch == 3) { break; }
      }
    }
    session.close();
    return std::pair(session.global_step(), log.count(sw::log_level::warning));
  };
  CHECK(steps_with_warnings() == std::pair(std::int64_t{6}, std::size_t{0}));
  CHECK(steps_with_warnings() == std::pair(std::int64_t{12}, std::size_t{1}));
}

TEST_CASE("several sources keep their places apart by name", "[training]") {
  const temporary_directory directory;
  adding_model model;
  {
    auto session = sw::monitored_training_session(model, {.checkpoint_dir = directory.path()});
    named_source a{.called = "a"};
    named_source b{.called = "b"};
    for (const auto& step : session.steps(a)) {
      if (step.global_step == 3) { break; }
    }
    for (const auto& step : session.steps(b)) {
      if (step.global_step == 5) { break; }
    }
    session.close();
  }
  auto session = sw::monitored_training_session(model, {.checkpoint_dir = directory.path()});
  named_source b{.called = "b"};
  for (const auto& step : session.steps(b)) {
    CHECK(step.value.batch == 3);
    break;
  }
  named_source a{.called = "a"};
  for (const auto& step : session.steps(a)) {
    CHECK(step.value.batch == 4);
    break;
  }
}

TEST_CASE("a source named \"default\" goes on where it stood, and is the same as one without a name", "[training]") {
  const temporary_directory directory;
  adding_model model;
  const auto three_steps = [&](const std::string& name) {
    auto session = sw::monitored_training_session(model, {.checkpoint_dir = directory.path()});
    named_source source{.called = name};
    std::int64_t first = 0;
    for (const auto& step : session.steps(source)) {
      if (first == 0) { first = step.value.batch; }
      if (step.value.batch == first + 2) { break; }
    }
    session.close();
    return first;
  };
  CHECK(three_steps("default") == 1);
  CHECK(three_steps("default") == 4);
  CHECK(three_steps("") == 7);

  auto session = sw::monitored_training_session(model, {});
  named_source unnamed;
  named_source named{.called = "default"};
  auto outer = session.steps(unnamed);
  CHECK((*outer.begin()).value.batch == 1);
  auto inner = session.steps(named);
  CHECK_THROWS_AS(*inner.begin(), sw::invalid_argument_error);
}

TEST_CASE("a failed seek may be tried again, and on_error of the hooks is called", "[training]") {
  struct stubborn_source : named_source {
    int refusals = 1;
    bool is_lost = false;
    void seek(std::uint64_t position) {
      if (refusals-- > 0) { throw std::runtime_error("not now"); }
      named_source::seek(position);
    }
    std::uint64_t position() const { return is_lost ? throw std::runtime_error("lost") : named_source::position(); }
  };
  struct listening_hook {
    int errors = 0;
    void on_error(sw::run_context<sw::model_session<adding_model>>&, const std::exception_ptr&) { ++errors; }
  };
  const temporary_directory directory;
  adding_model model;
  train_until(model, directory.path(), 2);
  auto session = sw::monitored_training_session(model, {.checkpoint_dir = directory.path()}, listening_hook{});
  stubborn_source source;
  const auto first_batch = [&] { return (*session.steps(source).begin()).value.batch; };
  CHECK_THROWS_WITH(first_batch(), "not now");
  CHECK(session.hook<listening_hook>().errors == 1);
  CHECK(first_batch() == 3);

  sw::test::log_capture log;
  const auto leave_lost = [&] {
    for ([[maybe_unused]] const auto& step : session.steps(source)) {
      source.is_lost = true;
      throw std::runtime_error("the loop body fails");
    }
  };
  CHECK_THROWS_WITH(leave_lost(), "the loop body fails");
  CHECK(log.contains(sw::log_level::error, "could not read the position"));
}

TEST_CASE("a hook continues with its saved state; state that was not saved starts afresh with a warning", "[training]") {
  const temporary_directory directory;
  adding_model model;
  train_until(model, directory.path(), 2);
  const auto run_two_more = [&] {
    auto session = sw::monitored_training_session(model, {.checkpoint_dir = directory.path()}, counting_hook{});
    session.run(std::int64_t{1});
    session.run(std::int64_t{1});
    session.close();
    return session.hook<counting_hook>().runs;
  };
  sw::test::log_capture log;
  CHECK(run_two_more() == 2);
  CHECK(log.contains(sw::log_level::warning, "the state of the hook \"counter\""));
  CHECK(run_two_more() == 4);
}

TEST_CASE("a checkpoint of another model is refused, saying which variable and how", "[training]") {
  struct other_model {
    float sum = 0;
    std::vector<double> weights = {1};
    float bias = 0;
    void step() {}
    sw::variable_list variables() { return sw::variables({{"sum", sum}, {"weights", weights}, {"bias", bias}}); }
  };
  const temporary_directory directory;
  adding_model model;
  train_until(model, directory.path(), 2);
  other_model other{.sum = 7};
  try {
    auto session = sw::monitored_training_session(other, {.checkpoint_dir = directory.path()});
    FAIL("restored into a model that differs");
  } catch (const sw::invalid_argument_error& failure) {
    const std::string text = failure.what();
    CHECK(text.find("weights") != std::string::npos);
    CHECK(text.find("float64") != std::string::npos);
    CHECK(text.find("[3]") != std::string::npos);
    CHECK(text.find("bias") != std::string::npos);
  }
  CHECK(other.sum == 7);  // nothing was restored
}

TEST_CASE("a checkpoint of a later library is refused, and nothing is written into the model", "[training]") {
  const temporary_directory directory;
  {
    sw::saver saver(directory.path());
    adding_model model{.sum = 3};
    std::int64_t step = 1;
    std::int64_t version = 2;
    auto all = model.variables();
    all.emplace_back("global_step", step);
    all.emplace_back("stepwell/version", version);
    sw::snapshot_pool pool(sw::snapshot_size(all));
    saver.save_and_wait(sw::snapshot::capture(pool.acquire(), all, step));
  }
  adding_model model;
  CHECK_THROWS_WITH(sw::monitored_training_session(model, {.checkpoint_dir = directory.path()}), ContainsSubstring("layout version 2"));
  CHECK(model.sum == 0);
}

TEST_CASE("restoring needs no session: whole, in part, under other names", "[training]") {
  const temporary_directory directory;
  adding_model model;
  train_until(model, directory.path(), 3);
  const sw::checkpoint_reader source(*sw::latest_checkpoint(directory.path()));
  adding_model copy;
  sw::restore(copy.variables(), source);
  CHECK(copy.sum == model.sum);
  CHECK(copy.weights == model.weights);
  float total = 0;
  float fresh = 5;
  const auto report =
      sw::restore(sw::variables({{"total", total}, {"fresh", fresh}}), source, {.names = {{"total", "sum"}}, .allow_missing = true});
  CHECK(total == model.sum);
  CHECK(fresh == 5);
  CHECK(report.missing == std::vector<std::string>{"fresh"});
}
