// SPDX-License-Identifier: Apache-2.0
//
// An awaited training session calls the built-in hooks like a blocking one, resumes exactly, and recovers exactly.
#include "support/both_ways.hpp"
#include "support/catch.hpp"
#include "support/log_capture.hpp"
#include "support/temporary_directory.hpp"
#include "unit/hooks/effects_hook.hpp"
#include "unit/hooks/event_reading.hpp"
#include "unit/training/mixing_rig.hpp"

#include <stepwell/checkpoint/find_checkpoints.hpp>
#include <stepwell/data/source.hpp>
#include <stepwell/hooks/best_checkpoint_hook.hpp>
#include <stepwell/hooks/early_stopping_hook.hpp>
#include <stepwell/hooks/evaluate_every.hpp>
#include <stepwell/hooks/function_hooks.hpp>
#include <stepwell/hooks/logging_tensor_hook.hpp>
#include <stepwell/hooks/progress_hook.hpp>
#include <stepwell/hooks/scheduled_hook.hpp>
#include <stepwell/hooks/stop_hooks.hpp>
#include <stepwell/hooks/summary_saver_hook.hpp>
#include <stepwell/schedules/schedules.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace sw = stepwell;
namespace data = stepwell::data;
using namespace std::chrono_literals;
using namespace sw::test;

namespace {

constexpr std::array both_ways = {session_way::blocking, session_way::awaited};

// ---- hooks

/// A model whose loss falls until step 12, and rises from then on.
struct valley_model {
  struct result {
    double loss;
  };
  double rate = 0;          // set by a schedule
  double reduced_rate = 1;  // reduced on a plateau
  std::vector<double> used_rates;
  std::int64_t steps = 0;

  result step(const std::uint64_t& /*batch*/) {
    used_rates.push_back(rate * reduced_rate);
    ++steps;
    return {static_cast<double>((steps - 12) * (steps - 12))};
  }
  sw::variable_list variables() { return sw::variables({{"steps", steps}, {"reduced_rate", reduced_rate}}); }
};

/// Everything that hooks have done in a training.
struct traces {
  std::string progress;
  std::vector<std::string> logged;
  std::vector<std::int64_t> calls;
  std::vector<double> used_rates;
  std::map<std::int64_t, float> losses;
  std::int64_t best_step = 0;
  std::string why;

  friend bool operator==(const traces&, const traces&) = default;
};

traces traces_of(session_way way) {
  const temporary_directory directory;
  const auto clock = std::make_shared<sw::manual_clock>();
  const log_capture log;
  valley_model model;
  traces all;
  auto counted = data::counter();
  const auto end = train(
      way, model, sw::training_options{.clock = clock}, counted, 0, ticking_hook{clock, 4s},
      sw::progress_hook{{.line_every = 10, .is_terminal = false, .output = [&](std::string_view text) { all.progress += text; }},
                        &valley_model::result::loss},
      sw::scheduled(&valley_model::rate, sw::schedules::exponential_decay({.initial = 0.5, .decay_steps = 10, .decay_rate = 0.9})),
      sw::reduce_on_plateau_hook{{.plateau = {.factor = 0.5, .patience = 2}}, &valley_model::reduced_rate, &valley_model::result::loss},
      sw::every(30s, [&](std::int64_t step) { all.calls.push_back(step); }), sw::log_every(5, &valley_model::result::loss),
      sw::summarize_every(3, directory / "events", sw::summary::scalar("loss", &valley_model::result::loss)),
      sw::best_checkpoint_hook{{.directory = directory.path()}, &valley_model::result::loss},
      sw::early_stopping_hook{{.patience = 6}, &valley_model::result::loss});
  for (const auto& message : log.messages()) { all.logged.push_back(message.text); }
  all.used_rates = model.used_rates;
  all.losses = scalars_in(directory / "events", "loss");
  all.best_step = sw::best_checkpoint(directory.path()).value().step;
  all.why = end.why.text;
  return all;
}

// ---- resumed and recovered trainings

double loss_of(const mixing_model& model) { return static_cast<double>(model.mixed % 1000); }

/// Decisions and values of a training. A run that is resumed must make the same.
struct decisions {
  std::uint64_t mixed = 0;
  std::map<std::int64_t, double> seen;  // the values of the evaluation, by the step at which they took effect
  std::int64_t stopped_at = 0;
  std::int64_t best_step = 0;
  double best_value = 0;
  std::int64_t waited = 0;

  friend bool operator==(const decisions&, const decisions&) = default;
};

/// Adds the effects of one process. Steps that are done again must have the same effects.
void add_effects(decisions& all, const effects& seen) {
  for (const auto& [step, value] : seen) { CHECK(all.seen.try_emplace(step, value).first->second == value); }
}

/// Trains with an evaluation that decides when to stop, and which state is the best. Kills the first process after `killed_at`. `Model` is a
/// `mixing_model` that may fail.
template<class Model = mixing_model>
decisions decide(session_way way, bool is_beside, std::int64_t killed_at, Model model = {}) {
  const temporary_directory directory;
  decisions all;
  const auto run = [&](std::int64_t killed, Model& trained) {
    Model other;
    effects seen;
    auto source = shuffled(23, 5);
    const auto options = saving_in(directory.path());
    const auto go = [&](const auto& tested) {
      sw::early_stopping_hook stopping{{.patience = 6}, tested.value("loss")};
      const auto note = [&] { add_effects(all, seen); };
      try {
        const auto end =
            train(way, trained, options, source, killed, tested, effects_hook{tested.value("loss"), &seen},
                  sw::best_checkpoint_hook{{.saver = unsynced_saves()}, tested.value("loss")}, std::ref(stopping), sw::stop_at_step(60));
        all.stopped_at = end.global_step;
        all.waited = stopping.waited();
      } catch (...) {
        note();
        throw;
      }
      note();
    };
    const auto metric = sw::measure("loss", [](double value) { return value; });
    const auto test = [](const Model& now) { return loss_of(now); };
    is_beside ? go(sw::evaluate_every(3, sw::beside(other), test, metric)) : go(sw::evaluate_every(3, test, metric));
  };
  if (killed_at > 0) {
    Model killed;
    CHECK_THROWS_WITH(run(killed_at, killed), "killed");
  }
  run(0, model);
  const auto best = sw::best_checkpoint(directory.path()).value();
  all.mixed = model.mixed;
  all.best_step = best.step;
  all.best_value = best.value;
  return all;
}

/// Fails once in each of some steps.
struct failing_mixing_model : mixing_model {
  std::multiset<std::int64_t> fails_after;
  std::int64_t done = 0;

  void step(const std::vector<std::uint64_t>& batch) {
    if (const auto found = fails_after.find(done); found != fails_after.end()) {
      fails_after.erase(found);
      throw sw::aborted_error("the device is away");
    }
    ++done;
    mixing_model::step(batch);
  }
  sw::variable_list variables() { return sw::variables({{"mixed", mixed}, {"done", done}}); }
};

// ---- metrics

/// Numbers that a sink has received, by step.
struct received {
  std::mutex mutex;
  std::map<std::int64_t, double> losses;
};

struct keeping_sink final : sw::summary::metric_sink {
  explicit keeping_sink(received& destination) : kept(destination) {}
  void write(std::span<const sw::summary::metric> numbers) override {
    const std::lock_guard lock(kept.mutex);
    for (const auto& one : numbers) {
      if (one.tag == "mixed") { kept.losses[one.step] = one.value; }
    }
  }
  received& kept;
};

}  // namespace

TEST_CASE("hooks for progress, rates, logs, summaries, the best state and the end have the same effects in an awaited session",
          "[training][async][both_ways]") {
  const auto blocking = traces_of(session_way::blocking);
  CHECK(blocking.why.starts_with("early stopping: the best value of"));
  CHECK(blocking.best_step == 12);
  CHECK(blocking.used_rates.size() == 18);
  CHECK(blocking.used_rates.back() < 0.5 * blocking.used_rates.front());
  CHECK(blocking.calls == std::vector<std::int64_t>{8, 16});
  CHECK(blocking.losses.size() == 7);  // the last one by the close
  CHECK(blocking.progress.find("loss 0") != std::string::npos);
  CHECK(blocking.logged.size() > 4);
  const auto awaited = traces_of(session_way::awaited);
  CHECK(awaited == blocking);
  CHECK(awaited.progress == blocking.progress);
  CHECK(awaited.logged == blocking.logged);
}

TEST_CASE("an awaited run over a source read ahead on threads that is killed at any step resumes bit by bit",
          "[training][async][prefetch]") {
  const auto train_squares = [](session_way way, const std::string& directory, std::int64_t killed_at) {
    mixing_model model;
    auto source = squares();
    train(way, model, saving_in(directory), source, killed_at, sw::stop_at_step(40));
    return model.mixed;
  };
  const temporary_directory whole;
  const auto expected = train_squares(session_way::blocking, whole.path(), 0);
  check_resumed_after_kills(std::bind_front(train_squares, session_way::awaited), expected, 40, 3);
}

TEST_CASE("an awaited run with epochs and function hooks with state that is killed at any step makes the same calls",
          "[training][async][epochs][function_hooks]") {
  struct counts {
    std::uint64_t mixed = 0;
    std::vector<std::int64_t> ends = std::vector<std::int64_t>(8, 0);  // calls at the end of each epoch
    std::int64_t calls = 0;
    std::int64_t closes = 0;
    std::int64_t steps = 0;
    bool operator==(const counts&) const = default;
  };
  const auto train_epochs = [](session_way way, const std::string& directory, std::int64_t killed_at) {
    counts all;
    mixing_model model;
    auto source = data::shuffled_batches(numbers(23), {.batch_size = 4, .seed = 5, .epochs = 8});
    const auto end = train(way, model, saving_in(directory), source, killed_at,
                           sw::every_epoch([&](std::uint64_t epoch) { ++all.ends.at(epoch); },
                                           sw::saved_state{"ends", [&] { return sw::variables({{"ends", all.ends}}); }}),
                           sw::every_n_steps(
                               4, [&] { ++all.calls; }, sw::saved_state{"calls", [&] { return sw::variables({{"n", all.calls}}); }}),
                           sw::at_end([&] { ++all.closes; }, sw::saved_state{"closes", [&] { return sw::variables({{"n", all.closes}}); }}),
                           sw::stop_at_epoch(4));
    all.mixed = model.mixed;
    all.steps = end.global_step;
    return all;
  };
  const temporary_directory whole;
  const auto expected = train_epochs(session_way::blocking, whole.path(), 0);
  CHECK(expected.ends == std::vector<std::int64_t>{1, 1, 1, 1, 0, 0, 0, 0});
  CHECK(expected.calls == 6);
  CHECK(expected.closes == 1);
  check_resumed_after_kills(std::bind_front(train_epochs, session_way::awaited), expected, 24);
}

TEST_CASE("a run with an evaluation that is killed at any step decides like one that is not, blocking and awaited",
          "[training][async][evaluate_every][best][early_stopping]") {
  const log_capture log;
  const bool is_beside = GENERATE(false, true);
  const auto expected = decide(session_way::blocking, is_beside, 0);
  CHECK(expected.stopped_at > 20);
  CHECK(expected.stopped_at < 60);
  CHECK(expected.seen.size() > 6);
  for (const auto way : both_ways) {
    CHECK(decide(way, is_beside, 0) == expected);
    for (std::int64_t killed_at = 1; killed_at < expected.stopped_at; killed_at += 2) {
      CAPTURE(is_beside, way == session_way::awaited, killed_at);
      CHECK(decide(way, is_beside, killed_at) == expected);
    }
  }
}

TEST_CASE("a run with an evaluation that fails and recovers at any step decides like one that does not, blocking and awaited",
          "[training][async][evaluate_every][recovery]") {
  const log_capture log;
  const bool is_beside = GENERATE(false, true);
  const auto expected = decide<failing_mixing_model>(session_way::blocking, is_beside, 0);
  CHECK(expected == decide(session_way::blocking, is_beside, 0));
  for (const auto way : both_ways) {
    for (std::int64_t step = 1; step < expected.stopped_at; ++step) {
      CAPTURE(is_beside, way == session_way::awaited, step);
      failing_mixing_model model;
      model.fails_after = {step, step + 2, step + 2};
      CHECK(decide(way, is_beside, 0, model) == expected);
    }
  }
}

TEST_CASE("an awaited resume with other data warns or fails as the options say", "[training][async][fingerprint]") {
  const temporary_directory directory;
  mixing_model model;
  const auto three_steps = [&](std::uint64_t seed, sw::other_data_policy policy) {
    const log_capture log;
    auto options = saving_in(directory.path());
    options.on_other_data = policy;
    auto source = shuffled(23, seed);
    train_awaited(model, options, source, 0, sw::stop_at_step_hook{{.num_steps = 3}});
    CHECK(log.count(sw::log_level::warning) ==
          (log.contains(sw::log_level::warning, "other data (23 examples, seed " + std::to_string(seed) + ")") ? 1U : 0U));
    return log.count(sw::log_level::warning);
  };
  CHECK(three_steps(5, sw::other_data_policy::warn) == 0);
  CHECK(three_steps(6, sw::other_data_policy::warn) == 1);
  CHECK(three_steps(6, sw::other_data_policy::fail) == 0);
  const auto before = model.mixed;
  CHECK_THROWS_AS(three_steps(7, sw::other_data_policy::fail), sw::failed_precondition_error);
  CHECK(model.mixed == before);
  CHECK(three_steps(6, sw::other_data_policy::fail) == 0);
}

TEST_CASE("another thread reads the metrics of an awaited session, and a sink of the program gets its summaries",
          "[training][async][metrics]") {
  const temporary_directory directory;
  const log_capture log;
  received kept;
  mixing_model model;
  auto options = saving_in(directory.path());
  options.summaries.save_steps = 10;
  options.metrics = {std::make_shared<sw::summary::sink_writer>("the test", std::make_unique<keeping_sink>(kept))};
  auto session = sw::monitored_training_session(
      sw::defer_start, model, options, sw::summaries(sw::summary::scalar("mixed", [](const mixing_model& now) { return loss_of(now); })),
      sw::stop_at_step(300));
  auto source = shuffled(23, 5);
  awaited_training<decltype(source)> body{source, 0};
  boost::asio::io_context loop;
  auto done = boost::asio::co_spawn(loop, sw::async_with(session, body), boost::asio::use_future);
  std::atomic<std::int64_t> seen = 0;
  {
    const std::jthread reader([&] {
      while (seen < 300) { seen = session.metrics().global_step; }
    });
    loop.run();
  }
  done.get();
  CHECK(seen == 300);
  CHECK(session.metrics().saves > 1);
  const std::lock_guard lock(kept.mutex);
  CHECK(kept.losses.size() == 31);  // with the last step, 300
  CHECK(kept.losses.at(291) == scalars_in(directory.path(), "mixed").at(291));
}
