// SPDX-License-Identifier: Apache-2.0
//
// The state after a recovery: variables, hooks, rates, averages, metrics and sources have the value of the restored step, or their initial
// value if the restored checkpoint lacks them. Each test compares the last checkpoint of a run with failures with that of an uninterrupted
// run, which contains all of this state.
#include "support/both_ways.hpp"
#include "support/catch.hpp"
#include "support/log_capture.hpp"
#include "support/temporary_directory.hpp"

#include <stepwell/checkpoint/checkpoint_reader.hpp>
#include <stepwell/checkpoint/find_checkpoints.hpp>
#include <stepwell/creation/scaffold.hpp>
#include <stepwell/data/shuffled_batches.hpp>
#include <stepwell/hooks/early_stopping_hook.hpp>
#include <stepwell/hooks/ema_hook.hpp>
#include <stepwell/hooks/epoch_mean_hook.hpp>
#include <stepwell/hooks/evaluate_every.hpp>
#include <stepwell/hooks/function_hooks.hpp>
#include <stepwell/hooks/scheduled_hook.hpp>
#include <stepwell/hooks/stop_hooks.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sw = stepwell;
using namespace sw::test;

namespace {

/// A model with variables that older checkpoints lack, and a rate that only hooks set. Each step in `failing` fails once.
struct growing_model {
  struct result {
    double loss;
    double a;
  };
  double a = 4;
  double b = 100;
  std::string text = "new";
  std::int64_t done = 0;
  double rate = 1;
  bool is_new = true;
  std::set<std::int64_t> failing;

  result step(const std::vector<std::uint64_t>& batch) {
    if (failing.erase(done + 1) > 0) {
      b = -1;
      throw sw::aborted_error("a server restarts");
    }
    ++done;
    a = a / 2 + static_cast<double>(batch.front());
    b += rate;
    text += '+';
    return {1.0, a};
  }
  sw::variable_list variables() {
    sw::variable_list all = sw::variables({{"a", a}, {"done", done}});
    if (is_new) {
      all.push_back(sw::variable_ref("b", b).optional());
      all.push_back(sw::variable_ref("text", text).optional());
    }
    return all;
  }
};

sw::training_options options_in(const std::string& directory, std::int64_t save_steps) {
  return {.checkpoint_dir = directory,
          .saves = {.save_steps = save_steps, .saver = unsynced_saves()},
          .step_counter = {.every_n_steps = sw::none},
          .retry = {.initial_backoff = 0}};
}

double value_of(double value) { return value; }

auto source_named(std::string name) {
  std::vector<std::uint64_t> numbers(40);
  std::iota(numbers.begin(), numbers.end(), std::uint64_t{1});
  return sw::data::shuffled_batches(std::move(numbers), {.batch_size = 8, .seed = 3, .name = std::move(name)});
}

/// Calls `use` with every hook of the library that has state.
template<class Use>
void with_all_hooks(growing_model& model, std::int64_t last_step, const Use& use) {
  auto source = source_named("late");
  std::int64_t calls = 0;
  const auto loss = [](const growing_model& of, double batch) { return of.a * batch; };
  auto evaluated = sw::evaluate_every({.every = 3, .name = "test"}, std::vector<double>{1, 2}, loss, sw::measure("loss", value_of));
  use(source, sw::ema_hook{{.decay = 0.9}, model}, sw::early_stopping_hook{{.patience = 1000}, &growing_model::result::loss},
      sw::reduce_on_plateau_hook{{.plateau = {.factor = 0.5, .patience = 4}}, &growing_model::rate, &growing_model::result::loss},
      sw::reduce_on_plateau_hook{{.plateau = {.patience = 1000}, .name = "watching"}, &growing_model::rate, evaluated.value("loss")},
      evaluated, sw::epoch_mean_hook{sw::tag("a", &growing_model::result::a)}, sw::stop_at_epoch(1000),
      sw::every_n_steps(
          1, [&calls] { ++calls; }, sw::saved_state{"calls", [&calls] { return sw::variables({{"n", calls}}); }}),
      sw::stop_at_step(last_step));
}

void train_with_all(session_way way, growing_model& model, const sw::training_options& options, std::int64_t last_step) {
  with_all_hooks(model, last_step, [&](auto& source, auto... hooks) { train(way, model, options, source, 0, std::move(hooks)...); });
}

/// Returns the names of the tensors that differ.
std::vector<std::string> differences(const std::map<std::string, std::string>& left, const std::map<std::string, std::string>& right) {
  std::vector<std::string> names;
  for (const auto* side : {&left, &right}) {
    for (const auto& [name, value] : *side) {
      const auto is_in = [&](const auto& other) { return other.contains(name) && other.at(name) == value; };
      if (!is_in(left) || !is_in(right)) { names.push_back(name); }
    }
  }
  return names;
}

void train_before(const std::string& directory) {
  growing_model old;
  old.is_new = false;
  auto source = source_named("early");
  train(session_way::blocking, old, options_in(directory, 10), source, 0, sw::stop_at_step(10));
}

std::string text_of(std::span<const std::byte> bytes, std::span<const std::string> strings) {
  std::string text;
  for (const auto byte : bytes) { text += fmt::format("{:02x}", std::to_integer<int>(byte)); }
  for (const auto& one : strings) { text += one; }
  return text;
}

/// Returns the values of all tensors in the newest checkpoint, as text.
std::map<std::string, std::string> newest_state(const std::string& directory) {
  const auto checkpoint = sw::open_newest(directory);
  REQUIRE(checkpoint);
  std::map<std::string, std::string> all;
  for (const auto& entry : checkpoint->entries()) {
    if (entry.name.starts_with("stepwell/saver/")) { continue; }
    const auto value = checkpoint->read(entry.name);
    all[std::string(entry.name)] = text_of(value.bytes(), value.strings());
  }
  return all;
}

constexpr std::array both_ways = {session_way::blocking, session_way::awaited};

}  // namespace

TEST_CASE("a recovery to a checkpoint that lacks variables, hooks and sources begins them anew", "[training][recovery][state]") {
  const temporary_directory whole;
  train_before(whole.path());
  growing_model unbroken;
  train_with_all(session_way::blocking, unbroken, options_in(whole.path(), 10), 30);
  const auto expected = newest_state(whole.path());
  REQUIRE(expected.size() > 20);
  for (const auto way : both_ways) {
    const temporary_directory directory;
    train_before(directory.path());
    growing_model model;
    model.failing = {15, 17, 29};
    train_with_all(way, model, options_in(directory.path(), 10), 30);
    CHECK(model.failing.empty());
    CHECK(differences(newest_state(directory.path()), expected) == std::vector<std::string>{});
    CHECK(model.rate == unbroken.rate);
  }
}

TEST_CASE("a recovery to a checkpoint of the same run undoes all changes", "[training][recovery][state]") {
  const auto run = [](session_way way, std::set<std::int64_t> failing) {
    const temporary_directory directory;
    growing_model model;
    model.failing = std::move(failing);
    train_with_all(way, model, options_in(directory.path(), 8), 32);
    CHECK(model.failing.empty());
    auto all = newest_state(directory.path());
    all["rate"] = std::to_string(model.rate);
    return all;
  };
  const auto expected = run(session_way::blocking, {});
  for (const auto way : both_ways) {
    CHECK(differences(run(way, {7, 15, 31}), expected) == std::vector<std::string>{});
    CHECK(differences(run(way, {15, 16, 24}), expected) == std::vector<std::string>{});
  }
}

TEST_CASE("a recovery without a checkpoint begins anew, with and without a copy of the initial state", "[training][recovery][state]") {
  const auto run = [](std::set<std::int64_t> failing, bool keeps_copy) {
    growing_model model;
    model.failing = std::move(failing);
    auto options = options_in("", 8);
    options.saves.save_steps = sw::none;
    options.saves.saver = {};
    options.keep_initial_state = keeps_copy;
    const auto init = [](growing_model& of) { of = {.failing = std::move(of.failing)}; };
    const auto scaffold = std::make_shared<sw::scaffold<growing_model>>(sw::scaffold_options<growing_model>{.init_op = init});
    std::map<std::string, std::string> state;
    with_all_hooks(model, 20, [&](auto& source, auto... hooks) {
      auto session = sw::monitored_training_session(model, options, scaffold, std::move(hooks)...);
      for ([[maybe_unused]] const auto& step : session.steps(source)) {}
      const auto taken = session.snapshot();
      for (const auto& entry : taken.entries()) { state[std::string(entry.name)] = text_of(entry.bytes, entry.strings); }
      session.close();
    });
    CHECK(model.failing.empty());
    return state;
  };
  const auto expected = run({}, true);
  REQUIRE(expected.size() > 20);
  CHECK(differences(run({7, 15}, true), expected) == std::vector<std::string>{});
  CHECK(differences(run({7, 15}, false), expected) == std::vector<std::string>{});
}

TEST_CASE("a reduction on a plateau is undone if the restored state is older", "[training][recovery][reduce_on_plateau]") {
  const auto run = [](std::set<std::int64_t> failing) {
    const temporary_directory directory;
    growing_model model;
    model.failing = std::move(failing);
    auto source = source_named("s");
    train(session_way::blocking, model, options_in(directory.path(), 8), source, 0,
          sw::reduce_on_plateau_hook{{.plateau = {.factor = 0.5, .patience = 9}}, &growing_model::rate, &growing_model::result::loss},
          sw::stop_at_step(20));
    return std::pair(model.b, model.rate);
  };
  const auto expected = run({});
  CHECK(run({12}) == expected);
  CHECK(run({12, 13, 20}) == expected);
}

TEST_CASE("the average of a variable that was added later begins with the variable", "[training][resume][ema]") {
  const temporary_directory directory;
  const auto run = [&](bool is_new, std::int64_t last_step) {
    growing_model model;
    model.is_new = is_new;
    sw::ema_hook average({.decay = 0.5}, model);
    auto source = source_named("s");
    train(session_way::blocking, model, options_in(directory.path(), 100), source, 0, std::ref(average), sw::stop_at_step(last_step));
    growing_model averaged;
    averaged.is_new = is_new;
    average.copy_to(averaged);
    return averaged.b;
  };
  run(false, 10);
  CHECK(run(true, 12) == 101.25);  // b is 100, 101, 102
}

TEST_CASE("a metric that was added to an evaluation is empty until it is measured", "[training][resume][evaluate_every]") {
  const temporary_directory directory;
  const std::vector<double> test{1, 2};
  const auto loss = [](const growing_model&, double batch) { return batch; };
  const auto run = [&](auto evaluated, std::string_view metric, std::int64_t last_step) {
    growing_model model;
    const auto watched = evaluated.value(metric);
    auto source = source_named("s");
    train(session_way::blocking, model, options_in(directory.path(), 100), source, 0, evaluated, sw::stop_at_step(last_step));
    return watched.value();
  };
  const auto more = [&] {
    return sw::evaluate_every({.every = 4}, test, loss, sw::measure("old", value_of), sw::measure("added", value_of));
  };
  CHECK(run(sw::evaluate_every({.every = 4}, test, loss, sw::measure("old", value_of)), "old", 5) == 1.5);
  CHECK(run(more(), "added", 6) == std::nullopt);
  CHECK(run(more(), "added", 7) == std::nullopt);  // after a second restart, too
  CHECK(run(more(), "old", 7) == 1.5);
  CHECK(run(more(), "added", 9) == 1.5);
}

TEST_CASE("one warning names everything that a restored checkpoint lacks", "[training][resume][messages]") {
  const temporary_directory directory;
  train_before(directory.path());
  growing_model model;
  const log_capture log;
  train_with_all(session_way::blocking, model, options_in(directory.path(), 10), 12);
  std::vector<std::string> warnings;
  for (const auto& line : log.messages()) {
    if (line.text.find("early_stopping") != std::string::npos && line.level == sw::log_level::warning) { warnings.push_back(line.text); }
  }
  REQUIRE(warnings.size() == 1);
  for (const auto* part : {"\"b\"", "\"text\"", "the hook \"ema\"", "the hook \"early_stopping\"", "the hook \"reduce_on_plateau\"",
                           "the hook \"calls\"", "they begin with their initial values"}) {
    CHECK(warnings.front().find(part) != std::string::npos);
  }
}
