// SPDX-License-Identifier: Apache-2.0
//
// Random engines, distributions, and values that two functions read and write, as variables of training sessions.
#include "support/both_ways.hpp"
#include "support/catch.hpp"
#include "support/temporary_directory.hpp"

#include <stepwell/checkpoint/checkpoint_reader.hpp>
#include <stepwell/checkpoint/find_checkpoints.hpp>
#include <stepwell/checkpoint/restore.hpp>
#include <stepwell/hooks/checkpoint_saver_hook.hpp>
#include <stepwell/hooks/ema_hook.hpp>
#include <stepwell/hooks/evaluate_every.hpp>
#include <stepwell/hooks/stop_hooks.hpp>

#include <array>
#include <cstdint>
#include <fstream>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace sw = stepwell;
using namespace sw::test;

namespace {

constexpr std::array both_ways = {session_way::blocking, session_way::awaited};

/// A rate behind two functions, whose calls are counted.
struct counted_rate {
  double value = 1;
  std::vector<double> set_to;
  int gets = 0;

  double get() { return ++gets, value; }
  void set(double restored) { set_to.push_back(value = restored); }
};

/// A model whose state depends on all numbers that it has drawn. Each step in `failing` fails once, after it has drawn a number.
struct drawing_model {
  std::mt19937_64 rng{5};
  std::normal_distribution<double> normal{0, 2};
  counted_rate rate;
  double sum = 0;
  std::set<std::int64_t> failing;
  bool has_random = true;

  void step(const std::int64_t& batch) {
    const double drawn = normal(rng);
    if (failing.erase(batch) > 0) {
      rate.value = -1;
      throw sw::aborted_error("a server restarts");
    }
    sum += drawn * rate.value;
    rate.value *= 1.125;
  }
  sw::variable_list variables() {
    if (!has_random) { return sw::variables({{"sum", sum}}); }
    return sw::variables(
        {{"sum", sum},
         sw::variable_ref("rng", rng).optional(),
         sw::variable_ref("normal", normal).optional(),
         {"optimizer", {sw::variable_ref("rate", [this] { return rate.get(); }, [this](double to) { rate.set(to); }).optional()}}});
  }
};

sw::training_options options_in(const std::string& directory, std::int64_t save_steps = 5) {
  return {.checkpoint_dir = directory,
          .saves = {.save_steps = save_steps, .saver = unsynced_saves()},
          .step_counter = {.every_n_steps = sw::none},
          .retry = {.initial_backoff = 0}};
}

/// A seekable source of increasing numbers.
struct counting_source {
  std::int64_t next = 1;
  const std::int64_t* peek() { return &next; }
  void advance() { ++next; }
  [[nodiscard]] std::uint64_t position() const { return static_cast<std::uint64_t>(next - 1); }
  void seek(std::uint64_t position) { next = static_cast<std::int64_t>(position) + 1; }
};

template<class... Hooks>
sw::session_metrics train_until(session_way way, drawing_model& model, const sw::training_options& options, std::int64_t last_step,
                                Hooks... hooks) {
  counting_source source;
  return train(way, model, options, source, 0, std::move(hooks)..., sw::stop_at_step(last_step)).metrics;
}

}  // namespace

TEST_CASE("a run with a random engine resumes and recovers exactly", "[training][resume][recovery][random]") {
  const temporary_directory whole;
  drawing_model expected;
  train_until(session_way::blocking, expected, options_in(whole.path()), 24);
  for (const auto way : both_ways) {
    const temporary_directory directory;
    drawing_model first;
    first.failing = {3, 7};
    train_until(way, first, options_in(directory.path()), 12);
    CHECK(first.failing.empty());
    drawing_model second;
    second.rng.seed(99);
    second.failing = {13, 20};
    train_until(way, second, options_in(directory.path()), 24);
    CHECK(second.sum == expected.sum);
    CHECK(second.rng == expected.rng);
    CHECK(second.normal == expected.normal);
    CHECK(second.rate.value == expected.rate.value);
  }
}

TEST_CASE("the functions of a variable are called once a save and once a restore", "[training][saver][random]") {
  const temporary_directory directory;
  const temporary_directory other;
  drawing_model model;
  const auto metrics =
      train_until(session_way::blocking, model, options_in(directory.path()), 10,
                  sw::checkpoint_saver_hook({.checkpoint_dir = other.path(), .save_steps = 10, .saver = unsynced_saves()}));
  CHECK(metrics.saves == 5);    // steps 0, 5, 10 and 0, 10
  CHECK(model.rate.gets == 6);  // and the copy of the initial state
  CHECK(model.rate.set_to.empty());

  drawing_model resumed;
  resumed.failing = {12};
  const auto later = train_until(session_way::blocking, resumed, options_in(directory.path()), 15);
  CHECK(later.recoveries == 1);
  CHECK(later.saves == 1);
  CHECK(resumed.rate.gets == 1);
  CHECK(resumed.rate.set_to == std::vector<double>(2, model.rate.value));
}

TEST_CASE("the functions of a variable are not called again if a damaged checkpoint is skipped", "[training][recovery][random]") {
  const temporary_directory directory;
  drawing_model model;
  train_until(session_way::blocking, model, options_in(directory.path()), 10);
  const auto newest = sw::list_checkpoints(directory.path()).back();
  {
    std::fstream data(newest + ".data-00000-of-00001", std::ios::in | std::ios::out | std::ios::binary);
    data.seekp(3);
    data.put('\x7f');
  }
  drawing_model resumed;
  train_until(session_way::blocking, resumed, options_in(directory.path()), 6);
  CHECK(resumed.rate.set_to.size() == 1);
}

TEST_CASE("an engine that an older checkpoint lacks begins anew in each recovery", "[training][recovery][random]") {
  const auto run = [](std::set<std::int64_t> failing) {
    const temporary_directory directory;
    drawing_model old;
    old.has_random = false;
    train_until(session_way::blocking, old, options_in(directory.path(), 100), 3);
    drawing_model model;
    model.failing = std::move(failing);
    train_until(session_way::blocking, model, options_in(directory.path(), 100), 9);
    CHECK(model.failing.empty());
    return std::pair(model.sum, model.rng);
  };
  CHECK(run({5, 8}) == run({}));
}

TEST_CASE("a checkpoint with an engine of another type is an error that names the variable", "[training][resume][random]") {
  struct small_model {
    std::minstd_rand rng;
    double sum = 0;
    void step(const std::int64_t&) { sum += 1; }
    sw::variable_list variables() { return sw::variables({{"rng", rng}, {"sum", sum}}); }
  };
  const temporary_directory directory;
  drawing_model model;
  train_until(session_way::blocking, model, options_in(directory.path()), 3);
  small_model other;
  CHECK_THROWS_AS(sw::monitored_training_session(other, {.checkpoint_dir = directory.path()}), sw::invalid_argument_error);
  CHECK_THROWS_WITH(sw::monitored_training_session(other, {.checkpoint_dir = directory.path()}), ContainsSubstring("\"rng\""));
  CHECK(other.rng == std::minstd_rand());
}

TEST_CASE("engines are strings in a checkpoint, have no moving average, and are restored into other models", "[training][random][ema]") {
  const temporary_directory directory;
  drawing_model model;
  drawing_model beside;
  train_until(session_way::blocking, model, options_in(directory.path()), 8, sw::ema_hook{model},
              sw::evaluate_every(
                  4, sw::beside(beside), std::vector<int>{1}, [](const drawing_model& of, int) { return of.sum; },
                  sw::measure("sum", [](double sum) { return sum; })));
  CHECK(beside.rng == model.rng);
  CHECK(beside.rate.value == model.rate.value);
  const auto saved = sw::open_newest(directory.path());
  REQUIRE(saved);
  const auto* rng = saved->find("rng");
  REQUIRE(rng != nullptr);
  CHECK(rng->dtype == sw::dtype::string);
  CHECK(rng->shape.empty());
  CHECK(saved->find("optimizer/rate")->dtype == sw::dtype::float64);
  CHECK(saved->contains("stepwell/hook/ema/average/sum"));
  CHECK_FALSE(saved->contains("stepwell/hook/ema/average/optimizer/rate"));
  drawing_model other;
  const auto report = sw::restore(other.variables(), *saved);
  CHECK(report.missing.empty());
  CHECK(other.rng == model.rng);
  CHECK(other.rate.set_to.size() == 1);
}

namespace {

struct preparing_model {
  std::minstd_rand rng{1};
  std::string text;
  void step(const std::int64_t&) { rng(); }
  sw::variable_list variables() {
    std::ostringstream out;
    out << rng;
    text = out.str();
    return sw::variables({{"text", text}});
  }
};
struct reading_hook {
  preparing_model* model;
  void after_create_session(auto&, auto&) { std::istringstream(model->text) >> model->rng; }
};

}  // namespace

TEST_CASE("a hook finds the restored values even if variables() of the model prepares them for a save", "[training][resume]") {
  for (const auto way : both_ways) {
    const temporary_directory directory;
    const auto run = [&](std::int64_t last_step) {
      preparing_model model;
      counting_source source;
      const sw::training_options options{.checkpoint_dir = directory.path(), .saves = {.saver = unsynced_saves()}};
      train(way, model, options, source, 0, reading_hook{&model}, sw::stop_at_step(last_step));
      return model.rng;
    };
    run(7);
    std::minstd_rand expected(1);
    expected.discard(9);
    CHECK(run(9) == expected);
  }
}
