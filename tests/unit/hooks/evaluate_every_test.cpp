// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"
#include "support/checkpoint_files.hpp"
#include "support/gate.hpp"
#include "support/log_capture.hpp"
#include "support/temporary_directory.hpp"
#include "support/toy_model.hpp"
#include "unit/hooks/effects_hook.hpp"
#include "unit/hooks/event_reading.hpp"

#include <stepwell/checkpoint/checkpoint_reader.hpp>
#include <stepwell/checkpoint/find_checkpoints.hpp>
#include <stepwell/checkpoint/restore.hpp>
#include <stepwell/data/shuffled_batches.hpp>
#include <stepwell/data/source.hpp>
#include <stepwell/hooks/best_checkpoint_hook.hpp>
#include <stepwell/hooks/early_stopping_hook.hpp>
#include <stepwell/hooks/evaluate_every.hpp>
#include <stepwell/hooks/function_hooks.hpp>
#include <stepwell/hooks/logging_tensor_hook.hpp>
#include <stepwell/hooks/stop_hooks.hpp>
#include <stepwell/protocol/any_hook.hpp>
#include <stepwell/protocol/detail/boundary_work.hpp>
#include <stepwell/training/async_training_session.hpp>
#include <stepwell/training/monitored_training_session.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

namespace sw = stepwell;
using namespace std::chrono_literals;
using sw::test::adding_model;
using sw::test::effects;
using sw::test::effects_hook;

namespace {

/// Returns the sum of the model plus the batch.
double shifted(const adding_model& model, const std::int64_t& batch) { return static_cast<double>(model.sum) + static_cast<double>(batch); }
double own_value(double value) { return value; }

const std::vector<std::int64_t> test_set = {10, 20, 30};

/// A model whose loss falls until it has done `best_at` steps, and rises from then on.
struct valley_model {
  using result = std::int64_t;
  std::int64_t steps = 0;
  std::int64_t best_at = 4;

  std::int64_t step() { return ++steps; }
  [[nodiscard]] double loss() const { return static_cast<double>((steps - best_at) * (steps - best_at)); }
  sw::variable_list variables() { return sw::variables({{"steps", steps}}); }
};

/// A model that counts its batches.
struct summing_model {
  using result = int;
  int count = 0;
  int step(const std::vector<std::int64_t>& /*batch*/) { return ++count; }
  sw::variable_list variables() { return sw::variables({{"count", count}}); }
};

double loss_of(const valley_model& model) { return model.loss(); }

sw::training_options in_directory(const std::string& directory) {
  return {.checkpoint_dir = directory, .saves = {.save_steps = 1}, .step_counter = {.every_n_steps = sw::none}};
}

/// A training with an evaluation beside it that a gate holds. It counts the evaluations that have ended.
struct held_evaluation {
  sw::test::gate door;
  std::atomic<int> ended = 0;
  const std::thread::id training = std::this_thread::get_id();
  valley_model model;
  valley_model other;

  held_evaluation() { door.close(); }

  /// Returns the hook, whose evaluation of every third state ends after the gate was opened.
  [[nodiscard]] auto every_third_state() {
    const auto evaluate = [this](const valley_model& now) {
      if (std::this_thread::get_id() == training) { throw sw::internal_error("the evaluation is not beside the training"); }
      door.pass();
      for (int i = 0; i < 1000; ++i) { std::this_thread::yield(); }  // a session that does not wait is now faster
      ++ended;
      return now.loss();
    };
    return sw::evaluate_every(3, sw::beside(other), evaluate, sw::measure("loss", &own_value));
  }
};

/// Opens a gate in the run that reaches `step`, before the hooks of later phases are called.
struct opening_hook {
  static constexpr auto phase = sw::hook_phase::observe;
  sw::test::gate* door;
  std::int64_t step;

  void after_run(auto& context, const auto&) {
    if (context.global_step() == step) { door->open(); }
  }
};

/// Opens a gate when the session that has this hook is closed, left by an exception or destroyed.
struct opening_at_the_end {
  struct work final : sw::boundary_work {
    explicit work(sw::test::gate* given) : door(given) {}
    void drain(const sw::deadline& /*until*/) override { door->open(); }
    void detach() override { door->open(); }
    sw::test::gate* door;
  };
  static constexpr auto phase = sw::hook_phase::observe;
  sw::test::gate* door;

  void after_create_session(auto& session, auto& /*threads*/) { session.add_work(std::make_shared<work>(door)); }
};

/// Runs three steps of an awaited session, and does not close it.
boost::asio::awaitable<void> run_three_awaited(auto& session) {
  co_await session.async_start();
  for (int i = 0; i < 3; ++i) { static_cast<void>(co_await session.async_run()); }
}

/// Runs an awaited session over `source` to its end.
boost::asio::awaitable<void> run_awaited(auto& session, auto& source) {
  co_await session.async_start();
  static_cast<void>(co_await session.async_run_all(source));
  co_await session.async_close();
}

}  // namespace

TEST_CASE("every n steps the model is evaluated on all batches, and the metrics start anew", "[hooks][evaluate_every]") {
  const auto tested =
      sw::evaluate_every(2, test_set, &shifted, sw::measure("mean", &own_value), sw::measure("sum", sw::metrics::sum(), &own_value));
  adding_model model;
  effects seen;
  sw::monitored_session session(model, tested, effects_hook{tested.value("mean"), &seen});
  CHECK(tested.value("mean").value() == std::nullopt);
  for (int i = 0; i < 5; ++i) { session.run(std::int64_t{1}); }
  CHECK(seen == effects{{2, 22}, {4, 24}});
  CHECK(tested.value("sum").value() == 72);
  CHECK(tested.value("sum").step() == 4);
  CHECK_THROWS_WITH(tested.value("loss"), ContainsSubstring("the metrics are mean, sum"));
}

TEST_CASE("a move of an evaluation is a copy, as for session(..., std::move(tested), hook(tested.value(...)))", "[hooks][evaluate_every]") {
  auto tested = sw::evaluate_every(1, test_set, &shifted, sw::measure("mean", &own_value));
  const auto moved = std::move(tested);
  adding_model model;
  sw::monitored_session session(model, tested);  // NOLINT(bugprone-use-after-move)
  session.run(std::int64_t{1});
  CHECK(moved.value("mean").value() == 21);
}

TEST_CASE("an evaluation takes a range, a seekable source, a function that returns a source, or no data", "[hooks][evaluate_every]") {
  const auto last_of = [](auto tested) {
    adding_model model;
    sw::monitored_session session(model, tested);
    for (int i = 0; i < 2; ++i) { session.run(std::int64_t{1}); }
    return tested.value("value").value();
  };
  const auto mean = sw::measure("value", &own_value);
  CHECK(last_of(sw::evaluate_every(1, test_set, &shifted, mean)) == 22);
  CHECK(last_of(sw::evaluate_every(1, std::vector<std::int64_t>{1, 3}, &shifted, mean)) == 4);
  CHECK(last_of(sw::evaluate_every(1, [] { return sw::data::source(test_set); }, &shifted, mean)) == 22);
  CHECK(last_of(sw::evaluate_every(
            1, sw::data::shuffled_batches(test_set, {.batch_size = 2, .epochs = 1}),
            [](const adding_model& model, const std::vector<std::int64_t>& batch) {
              return std::pair(model.sum + 1, static_cast<double>(batch.size()));
            },
            sw::measure("value", [](const auto& pair) { return pair; }))) == 3);
  CHECK(last_of(sw::evaluate_every(1, [](const adding_model& model) { return model.sum; }, mean)) == 2);
  CHECK(last_of(sw::evaluate_every(1, test_set, &shifted, sw::measure("value", sw::metrics::min_max(), [](auto& metric, double value) {
                                     metric.update(value);
                                   }))) == 20);
}

TEST_CASE("every epoch, after its last batch; every so many seconds of the session's clock", "[hooks][evaluate_every]") {
  const std::vector<std::int64_t> train = {1, 1, 1, 1, 1};
  const auto sum_of = [](const adding_model& model) { return model.sum; };
  SECTION("epochs") {
    summing_model model;
    const auto tested = sw::evaluate_every(
        sw::epochs(2), [](const summing_model& now) { return now.count; }, sw::measure("count", [](int value) { return value; }));
    effects seen;
    auto batches = sw::data::shuffled_batches(train, {.batch_size = 2, .epochs = 5});
    sw::monitored_session session(model, tested, effects_hook{tested.value("count"), &seen});
    for ([[maybe_unused]] const auto& step : session.steps(batches)) {}
    CHECK(seen == effects{{6, 6}, {12, 12}});
  }
  SECTION("seconds") {
    const auto clock = std::make_shared<sw::manual_clock>();
    adding_model model;
    const auto tested = sw::evaluate_every(10s, sum_of, sw::measure("sum", &own_value));
    effects seen;
    sw::monitored_session session(sw::training_options{.clock = clock}, model, tested, effects_hook{tested.value("sum"), &seen});
    for (int i = 0; i < 5; ++i) {
      session.run(std::int64_t{1});
      clock->advance(4s);
    }
    CHECK(seen == effects{{4, 4}});
  }
}

TEST_CASE("the values are logged, written as summaries, and fetched by other hooks", "[hooks][evaluate_every]") {
  const sw::test::temporary_directory directory;
  valley_model model;
  const auto tested = sw::evaluate_every({.every = 2, .name = "test"}, &loss_of, sw::measure("loss", &own_value));
  std::optional<double> fetched;
  const auto keep = [&](std::optional<double> value) { fetched = value; };
  sw::test::log_capture log;
  auto session = sw::monitored_training_session(model, in_directory(directory.path()), tested, sw::stop_at_step(4),
                                                sw::every_n_steps(1, keep, sw::fetch(tested.value("loss"))),
                                                sw::log_every(1, sw::tag("test loss", tested.value("loss"))));
  for ([[maybe_unused]] const auto& step : session.steps()) {}
  session.close();
  CHECK(log.contains(sw::log_level::info, "test at step 2: loss = 4 (1 call"));
  CHECK(sw::test::scalars_in(directory.path(), "test/loss") == std::map<std::int64_t, float>{{2, 4}, {4, 0}});
  CHECK(log.contains(sw::log_level::info, "test loss = 0"));
  CHECK(fetched == 0);
}

TEST_CASE("evaluations are logged at most once in ten seconds, with the session's name, and the last one at the close",
          "[hooks][evaluate_every]") {
  valley_model model;
  const auto time = std::make_shared<sw::manual_clock>();
  const auto tested = sw::evaluate_every(1, &loss_of, sw::measure("loss", &own_value));
  sw::test::log_capture log;
  sw::monitored_session session(sw::training_options{.name = "valley", .clock = time}, model, tested);
  for (int i = 0; i < 4; ++i) {
    session.run();
    time->advance(6s);
  }
  const auto is_logged = [&](int step) {
    return log.contains(sw::log_level::info, "[valley] evaluation at step " + std::to_string(step) + ": loss = ");
  };
  CHECK(is_logged(1));
  CHECK_FALSE(is_logged(2));
  CHECK(is_logged(3));
  CHECK_FALSE(is_logged(4));
  session.close();
  CHECK(is_logged(4));
}

TEST_CASE("early stopping and the best checkpoint watch a metric of an evaluation", "[hooks][evaluate_every][best][early_stopping]") {
  const sw::test::temporary_directory directory;
  valley_model model;
  const auto tested = sw::evaluate_every(1, &loss_of, sw::measure("loss", &own_value));
  auto session = sw::monitored_training_session(
      model, in_directory(directory.path()), tested, sw::best_checkpoint_hook{{.keep = 2}, tested.value("loss")},
      sw::early_stopping_hook{{.patience = 3, .restore_best = true}, tested.value("loss")}, sw::stop_at_step(100));
  for ([[maybe_unused]] const auto& step : session.steps()) {}
  session.close();
  CHECK(session.global_step() == 7);
  CHECK(session.stop_reason().text == "early stopping: the best value of loss was 0 at step 4; none of the 3 values since then is better");
  CHECK(sw::test::steps_in(directory / "best") == "3 4");
  CHECK(model.steps == 4);
}

TEST_CASE("a best checkpoint of an evaluation that never came is an error at the close", "[hooks][evaluate_every][best]") {
  const sw::test::temporary_directory directory;
  valley_model model;
  const auto tested = sw::evaluate_every(1000, &loss_of, sw::measure("loss", &own_value));
  auto session = sw::monitored_training_session(model, in_directory(directory.path()), tested,
                                                sw::best_checkpoint_hook{tested.value("loss")}, sw::stop_at_step(3));
  for ([[maybe_unused]] const auto& step : session.steps()) {}
  CHECK_THROWS_WITH(session.close(), ContainsSubstring("loss never had a value"));
}

TEST_CASE("beside the training, a value takes effect when the next evaluation is due", "[hooks][evaluate_every]") {
  valley_model model;
  valley_model other;
  const auto tested = sw::evaluate_every(2, sw::beside(other), &loss_of, sw::measure("loss", &own_value));
  effects seen;
  sw::monitored_session session(model, tested, effects_hook{tested.value("loss"), &seen});
  for (int i = 0; i < 7; ++i) { session.run(); }
  CHECK(seen == effects{{4, 4}, {6, 0}});
  CHECK(tested.value("loss").step() == 4);
  session.close();
  CHECK(other.steps == 6);  // the last evaluation has ended, too
}

TEST_CASE("an evaluation beside the training runs during the next steps, and the run at the next boundary waits for it",
          "[hooks][evaluate_every]") {
  held_evaluation held;
  const auto tested = held.every_third_state();
  effects seen;
  sw::monitored_session session(held.model, opening_hook{&held.door, 6}, tested, effects_hook{tested.value("loss"), &seen});
  for (int i = 0; i < 3; ++i) { session.run(); }
  held.door.wait_for_somebody();
  for (int i = 0; i < 2; ++i) { session.run(); }
  CHECK(held.ended == 0);
  CHECK(seen.empty());
  session.run();  // the gate is opened after the step, before the evaluation hook is called
  CHECK(held.ended >= 1);
  CHECK(seen == effects{{6, 1}});
}

TEST_CASE("a session that is left by an exception waits for an evaluation beside the training", "[hooks][evaluate_every]") {
  const sw::test::log_capture log;
  held_evaluation held;
  const auto tested = held.every_third_state();
  const auto train = [&] {
    sw::monitored_session session(held.model, opening_at_the_end{&held.door}, tested);
    for (int i = 0; i < 3; ++i) { session.run(); }
    held.door.wait_for_somebody();
    throw sw::internal_error("the loop's own");
  };
  CHECK_THROWS_WITH(train(), ContainsSubstring("the loop's own"));
  CHECK(held.ended == 1);  // `tested` still exists, but the thread uses neither `other` nor the data any more
}

TEST_CASE("an awaited session that is destroyed waits for an evaluation beside the training", "[hooks][evaluate_every][async]") {
  const sw::test::log_capture log;
  held_evaluation held;
  const auto tested = held.every_third_state();
  {
    sw::async_monitored_session session(sw::training_options(), held.model, opening_at_the_end{&held.door}, tested);
    boost::asio::io_context io;
    auto done = boost::asio::co_spawn(io, run_three_awaited(session), boost::asio::use_future);
    io.run();
    done.get();
    held.door.wait_for_somebody();
  }
  CHECK(held.ended == 1);
}

TEST_CASE("START stands before the values of an evaluation, even if other summaries of the session begin later",
          "[hooks][evaluate_every]") {
  const sw::test::temporary_directory directory;
  const auto train = [&](std::int64_t last_step) {
    valley_model model;
    auto options = in_directory(directory.path());
    options.summaries.save_steps = 1;
    const auto late = [](std::int64_t step) { return step < 7 ? std::optional<double>() : std::optional(static_cast<double>(step)); };
    auto session =
        sw::monitored_training_session(model, options, sw::summaries(sw::summary::scalar("late", late)),
                                       sw::evaluate_every(2, &loss_of, sw::measure("loss", &own_value)), sw::stop_at_step(last_step));
    for ([[maybe_unused]] const auto& step : session.steps()) {}
    session.close();
  };
  train(3);
  train(8);
  CHECK(sw::test::notes_in(directory.path(), sw::format::session_status::start) ==
        std::vector<std::pair<std::int64_t, std::string>>{{2, ""}, {4, ""}});
}

TEST_CASE("a resumed session that writes the values of an earlier step keeps the events of that step", "[hooks][evaluate_every]") {
  const sw::test::temporary_directory directory;
  const auto train = [&](std::int64_t last_step) {
    valley_model model;
    valley_model other;
    auto options = in_directory(directory.path());
    options.summaries.save_steps = 1;
    options.saves.saver.file_system = sw::test::fast_faulty_files();  // all hooks of the session share one event file on it
    auto session = sw::monitored_training_session(
        model, options, sw::summaries(sw::summary::scalar("count", [](std::int64_t step) { return static_cast<double>(step); })),
        sw::evaluate_every(2, sw::beside(other), &loss_of, sw::measure("loss", &own_value)), sw::stop_at_step(last_step));
    for ([[maybe_unused]] const auto& step : session.steps()) {}
    session.close();
  };
  train(4);
  train(5);  // writes the values of step 4, which were not in effect when the checkpoint of step 4 was saved
  CHECK(sw::test::notes_in(directory.path(), sw::format::session_status::start) ==
        std::vector<std::pair<std::int64_t, std::string>>{{1, ""}, {5, ""}});
}

TEST_CASE("an evaluation beside the training rejects the model that is trained", "[hooks][evaluate_every]") {
  valley_model model;
  const auto tested = sw::evaluate_every(2, sw::beside(model), &loss_of, sw::measure("loss", &own_value));
  CHECK_THROWS_WITH(sw::monitored_session(model, tested), ContainsSubstring("beside(...) was given the model that the session trains"));
  CHECK(model.steps == 0);
}

TEST_CASE("a hook that watches an evaluation which the session does not have is rejected at the creation",
          "[hooks][evaluate_every][best]") {
  const sw::test::temporary_directory directory;
  valley_model model;
  const auto tested = sw::evaluate_every(2, &loss_of, sw::measure("loss", &own_value));
  const auto message = ContainsSubstring("\"loss\" would never get a value");
  CHECK_THROWS_WITH(sw::monitored_session(model, sw::early_stopping_hook{{.patience = 2}, tested.value("loss")}), message);
  CHECK_THROWS_WITH(sw::monitored_training_session(model, in_directory(directory.path()), sw::best_checkpoint_hook{tested.value("loss")}),
                    message);
  // The order of the hooks makes no difference, and neither does type erasure.
  using raw = sw::model_session<valley_model>;
  sw::any_hooks<raw, sw::hook_phase::observe> early;
  early.add(sw::early_stopping_hook{{.patience = 2}, tested.value("loss")});
  sw::monitored_session session(model, std::move(early), tested, sw::stop_at_step(4));
  for ([[maybe_unused]] const auto& step : session.steps()) {}
  session.close();
  CHECK(session.global_step() == 4);
}

TEST_CASE("the best checkpoint of an evaluation beside the training is the state that was evaluated", "[hooks][evaluate_every][best]") {
  const sw::test::temporary_directory directory;
  valley_model model;
  valley_model other;
  const auto tested = sw::evaluate_every(2, sw::beside(other), &loss_of, sw::measure("loss", &own_value));
  auto session = sw::monitored_training_session(
      model, in_directory(directory.path()), tested, sw::best_checkpoint_hook{tested.value("loss")},
      sw::early_stopping_hook{{.patience = 2, .restore_best = true}, tested.value("loss")}, sw::stop_at_step(100));
  for ([[maybe_unused]] const auto& step : session.steps()) {}
  session.close();
  CHECK(session.global_step() == 10);  // the values of steps 6 and 8 are not better; that of step 8 takes effect at step 10
  const auto best = sw::best_checkpoint(directory.path());
  REQUIRE(best);
  CHECK(best->step == 4);
  CHECK(best->value == 0);
  CHECK(model.steps == 4);
}

TEST_CASE("an awaited session evaluates, saves the best state and restores it like a blocking one",
          "[hooks][evaluate_every][best][async]") {
  const bool is_beside = GENERATE(false, true);
  CAPTURE(is_beside);
  const sw::test::temporary_directory directory;
  adding_model model;
  adding_model other;
  const auto distance = [](const adding_model& now) { return (now.sum - 4) * (now.sum - 4); };
  const std::vector<std::int64_t> ones(20, 1);
  auto source = sw::data::source(ones);
  const auto train = [&](auto tested) {
    auto session = sw::monitored_training_session(
        sw::defer_start, model,
        {.checkpoint_dir = directory.path(), .saves = {.save_steps = 1}, .step_counter = {.every_n_steps = sw::none}}, tested,
        sw::best_checkpoint_hook{tested.value("distance")},
        sw::early_stopping_hook{{.patience = 2, .restore_best = true}, tested.value("distance")});
    boost::asio::io_context io;
    auto done = boost::asio::co_spawn(io, run_awaited(session, source), boost::asio::use_future);
    io.run();
    done.get();
  };
  const auto metric = sw::measure("distance", &own_value);
  if (is_beside) {
    train(sw::evaluate_every(2, sw::beside(other), distance, metric));
  } else {
    train(sw::evaluate_every(2, distance, metric));
  }
  CHECK(sw::best_checkpoint(directory.path())->step == 4);
  CHECK(model.sum == 4);
}

TEST_CASE("a run that is resumed after any step sees the values of an evaluation beside the training at the same steps",
          "[hooks][evaluate_every]") {
  const auto train = [](const std::string& directory, const std::vector<std::int64_t>& ends) {
    effects seen;
    for (const auto end : ends) {
      valley_model model;
      valley_model other;
      const auto tested = sw::evaluate_every(3, sw::beside(other), &loss_of, sw::measure("loss", &own_value));
      auto session = sw::monitored_training_session(model, in_directory(directory), tested, effects_hook{tested.value("loss"), &seen},
                                                    sw::stop_at_step(end));
      for ([[maybe_unused]] const auto& step : session.steps()) {}
      session.close();
    }
    return seen;
  };
  const sw::test::temporary_directory whole;
  const auto wanted = train(whole.path(), {13});
  CHECK(wanted == effects{{6, 1}, {9, 4}, {12, 25}});
  for (std::int64_t end = 1; end < 13; ++end) {
    CAPTURE(end);
    const sw::test::temporary_directory parts;
    CHECK(train(parts.path(), {end, 13}) == wanted);
  }
}

TEST_CASE("a checkpoint of the step of an evaluation beside the training has the same values, written at once or at the close",
          "[hooks][evaluate_every]") {
  const auto pending_after = [](std::int64_t save_steps) {
    const sw::test::temporary_directory directory;
    auto options = in_directory(directory.path());
    options.saves.save_steps = save_steps;
    valley_model model;
    valley_model other;
    auto session = sw::monitored_training_session(
        model, options, sw::evaluate_every(2, sw::beside(other), &loss_of, sw::measure("loss", &own_value)), sw::stop_at_step(6));
    for ([[maybe_unused]] const auto& step : session.steps()) {}
    session.close();
    const sw::checkpoint_reader saved(sw::latest_checkpoint(directory.path()).value());
    std::vector<std::vector<std::byte>> values;
    for (const auto* const name : {"step", "done", "value/loss"}) {
      const auto value = saved.read(std::string("stepwell/hook/evaluation/pending/") + name);
      values.emplace_back(value.bytes().begin(), value.bytes().end());
    }
    return values;
  };
  CHECK(pending_after(1) == pending_after(100));  // with 100, the only save is that at the close, after the evaluation has ended
}

TEST_CASE("a failed evaluation is a failure of the run, in the loop and beside it", "[hooks][evaluate_every]") {
  const auto fails = [](const valley_model& model) -> double {
    if (model.steps == 2) { throw sw::internal_error("no test data"); }
    return 0;
  };
  valley_model model;
  SECTION("in the loop") {
    sw::monitored_session session(model, sw::evaluate_every(2, fails, sw::measure("loss", &own_value)));
    session.run();
    CHECK_THROWS_WITH(session.run(), ContainsSubstring("no test data"));
  }
  SECTION("beside it") {
    valley_model other;
    sw::monitored_session session(model, sw::evaluate_every(2, sw::beside(other), fails, sw::measure("loss", &own_value)));
    for (int i = 0; i < 3; ++i) { session.run(); }
    CHECK_THROWS_WITH(session.run(), ContainsSubstring("no test data"));
  }
  SECTION("beside it, in the last evaluation, which the close waits for") {
    valley_model other;
    sw::monitored_session session(model, sw::evaluate_every(2, sw::beside(other), fails, sw::measure("loss", &own_value)));
    for (int i = 0; i < 3; ++i) { session.run(); }
    CHECK_THROWS_WITH(session.close(), ContainsSubstring("no test data"));
    CHECK(session.stop_reason().cause == sw::stop_cause::error);
  }
}

TEST_CASE("a metric is not updated with an empty optional, be it a number or a pair", "[hooks][evaluate_every][optional]") {
  const auto only = [](std::int64_t wanted, auto value) {  // returns `value` for one batch, and nothing for the others
    return [=](std::int64_t batch) { return batch == wanted ? std::optional(value) : std::nullopt; };
  };
  const auto tested = sw::evaluate_every(
      2, test_set, [](const adding_model& /*model*/, const std::int64_t& batch) { return batch; },
      sw::measure("number", sw::metrics::sum(), only(20, 4.0)), sw::measure("pair", only(30, std::pair(5.0, 2.0))),
      sw::measure("weight", sw::metrics::sum(), only(30, std::tuple(7.0F))), sw::measure("never", only(-1, 1.0)));
  adding_model model;
  sw::monitored_session session(model, tested);
  for (int i = 0; i < 2; ++i) { session.run(std::int64_t{1}); }
  CHECK(tested.value("number").value() == 4);
  CHECK(tested.value("pair").value() == 5);
  CHECK(tested.value("weight").value() == 7);
  CHECK(std::isnan(tested.value("never").value().value()));
}

TEST_CASE("log_every_secs = 0 logs each evaluation at once", "[hooks][evaluate_every]") {
  valley_model model;
  const sw::test::log_capture log;
  sw::monitored_session session(sw::training_options{.clock = std::make_shared<sw::manual_clock>()}, model,
                                sw::evaluate_every({.every = 1, .log_every_secs = 0}, &loss_of, sw::measure("loss", &own_value)));
  for (const auto* const step : {"step 1: ", "step 2: ", "step 3: "}) {
    session.run();
    CHECK(log.contains(sw::log_level::info, std::string("evaluation at ") + step));
  }
}

TEST_CASE("options of an evaluation that make no sense are refused", "[hooks][evaluate_every]") {
  const auto make = [](sw::evaluate_every_options options) {
    return sw::evaluate_every(options, &loss_of, sw::measure("loss", &own_value));
  };
  CHECK_THROWS_WITH(make({.every = 0}), ContainsSubstring("invalid every=0 steps"));
  CHECK_THROWS_WITH(make({.every = sw::epochs(-1)}), ContainsSubstring("invalid every=-1 epochs"));
  CHECK_THROWS_WITH(make({.every = 0s}), ContainsSubstring("invalid every=0 seconds"));
  CHECK_THROWS_WITH(make({.every = 1, .name = ""}), ContainsSubstring("name"));
  CHECK_THROWS_WITH(sw::evaluate_every(1, &loss_of, sw::measure("a", &own_value), sw::measure("a", &own_value)),
                    ContainsSubstring("two metrics"));
}
