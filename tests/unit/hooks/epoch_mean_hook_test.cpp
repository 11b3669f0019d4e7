// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"
#include "support/temporary_directory.hpp"

#include <stepwell/base/detail/unset.hpp>
#include <stepwell/data/shuffled_batches.hpp>
#include <stepwell/data/source.hpp>
#include <stepwell/hooks/detail/value_history.hpp>
#include <stepwell/hooks/epoch_mean_hook.hpp>
#include <stepwell/hooks/evaluate_every.hpp>
#include <stepwell/hooks/stop_hooks.hpp>
#include <stepwell/session/any_session.hpp>
#include <stepwell/training/async_training_session.hpp>
#include <stepwell/training/monitored_training_session.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace sw = stepwell;

namespace {

struct model {
  struct result {
    float loss;
    std::optional<std::int64_t> even;
  };
  std::int64_t steps = 0;
  std::set<std::int64_t> failing;  // each of these steps fails once
  result step(const std::vector<int>& /*batch*/) {
    if (failing.erase(steps + 1) > 0) { throw sw::aborted_error("a server restarts"); }
    ++steps;
    return {static_cast<float>(steps), steps % 2 == 0 ? std::optional(steps) : std::nullopt};
  }
  sw::variable_list variables() { return sw::variables({{"steps", steps}}); }
};

/// Two steps are an epoch.
auto batches(std::uint64_t epochs) { return sw::data::shuffled_batches(std::vector<int>(8, 1), {.batch_size = 4, .epochs = epochs}); }

auto means() { return sw::epoch_mean_hook{sw::tag("loss", &model::result::loss), sw::tag("even", &model::result::even)}; }

auto evaluation() {
  return sw::evaluate_every(
      {.every = sw::epochs(2), .name = "validation"}, [](const model& at) { return static_cast<double>(at.steps); },
      sw::measure("steps", [](double steps) { return steps; }));
}

using values = std::vector<std::tuple<std::string, double, std::int64_t>>;
values of(const std::vector<sw::history_value>& all) {
  values found;
  for (const auto& [name, value, step] : all) { found.emplace_back(name, value, step); }
  return found;
}

template<class Session, class Source>
boost::asio::awaitable<values> run_awaited(Session& session, Source& source) {
  co_await session.async_start();
  const auto loop = co_await session.async_run_all(source);
  co_await session.async_close();
  co_return of(loop.values);
}

}  // namespace

/// The history of `epochs` epochs and an evaluation after each second one.
values history_of(int epochs) {
  values all;
  for (int i = 1; i <= epochs; ++i) { all.emplace_back("loss", 2 * i - 0.5, 2 * i); }
  for (int i = 1; i <= epochs; ++i) { all.emplace_back("even", 2 * i, 2 * i); }
  for (int i = 2; i <= epochs; i += 2) { all.emplace_back("validation/steps", 2 * i, 2 * i); }
  return all;
}

TEST_CASE("run_all returns the means of each epoch and the metrics of each evaluation", "[hooks][epoch_mean]") {
  model trained;
  sw::monitored_session session(trained, means(), evaluation());
  auto source = batches(5);
  CHECK(of(session.run_all(source).values) == history_of(5));
}

TEST_CASE("an awaited run_all returns the same values", "[hooks][epoch_mean]") {
  boost::asio::io_context io;
  model trained;
  auto session = sw::monitored_training_session(sw::defer_start, trained, {}, means(), evaluation());
  auto source = batches(5);
  auto done = boost::asio::co_spawn(io, run_awaited(session, source), boost::asio::use_future);
  io.run();
  CHECK(done.get() == history_of(5));
}

TEST_CASE("a loop with a body reads the history from a copy of the hook", "[hooks][epoch_mean]") {
  model trained;
  const auto epochs = means();
  const auto tested = evaluation();
  sw::monitored_session session(trained, epochs, tested);
  auto source = batches(5);
  for (const auto& step : session.steps(source)) {
    if (step.global_step == 2) { CHECK(of(epochs.history()) == history_of(1)); }
  }
  auto all = of(epochs.history());
  for (const auto& evaluated : of(tested.history())) { all.push_back(evaluated); }
  CHECK(all == history_of(5));
}

TEST_CASE("the history of a run that continues in the middle of an epoch is that of an uninterrupted run", "[hooks][epoch_mean]") {
  const sw::test::temporary_directory directory;
  const auto run = [&](std::int64_t last_step) {
    model trained;
    auto session =
        sw::monitored_training_session(trained, {.checkpoint_dir = directory.path()}, means(), evaluation(), sw::stop_at_step(last_step));
    auto source = batches(5);
    auto found = of(session.run_all(source).values);
    session.close();
    return found;
  };
  CHECK(run(1).empty());
  CHECK(run(5) == history_of(2));
  CHECK(run(6) == history_of(3));
  CHECK(run(10) == history_of(5));
  CHECK(run(10) == history_of(5));  // no step: the values are in the checkpoint
}

TEST_CASE("a recovery drops the values of lost steps from the history", "[hooks][epoch_mean][recovery]") {
  const sw::test::temporary_directory directory;
  model trained;
  trained.failing = {6, 9};
  auto session = sw::monitored_training_session(
      trained, {.checkpoint_dir = directory.path(), .saves = {.save_steps = 3}, .retry = {.initial_backoff = 0}}, means(), evaluation());
  auto source = batches(5);
  const auto loop = session.run_all(source);
  CHECK(loop.steps > 10);
  CHECK(of(loop.values) == history_of(5));
}

TEST_CASE("the history keeps the bits of its values, omits what is not a value, and has a maximum size", "[hooks][epoch_mean]") {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  sw::detail::value_history history({"a", "b"}, "x/");
  const auto read = [&] {
    std::vector<sw::history_value> all;
    history.add_to(all);
    return all;
  };
  const auto text_of = [&](std::size_t i) -> std::string& {
    sw::variable_list all;
    history.add_variables(all);
    return all[i].strings().front();
  };
  history.add(std::vector{0.1 + 0.2, sw::detail::unset_number}, 7);
  history.add(std::vector{-infinity, 5e-324}, 8);
  CHECK(of(read()) == values{{"x/a", 0.1 + 0.2, 7}, {"x/a", -infinity, 8}, {"x/b", 5e-324, 8}});
  history.add(std::vector{std::numeric_limits<double>::quiet_NaN(), 1.0}, 9);
  CHECK(std::isnan(read()[2].value));

  text_of(0) = "1 2\nx 3\n4\n5 6 7\n\n99999999999999999999 1\n8 9";
  text_of(1).clear();
  CHECK(of(read()) == values{{"x/a", 2, 1}, {"x/a", 9, 8}});

  text_of(0) = std::string(std::size_t{1} << 22, '1');  // one line that never ends
  history.add(std::vector{1.0, 1.0}, 10);
  CHECK(of(read()) == values{{"x/b", 1, 10}});
  for (std::int64_t step = 0; step < 20000; ++step) { history.add(std::vector{-1.2345678901234567e-300, 1.0}, step); }
  CHECK(text_of(0).size() <= sw::detail::value_history::max_bytes);
  const auto kept = read();
  CHECK(std::ranges::count(kept, "x/a", &sw::history_value::name) >= 5000);
  CHECK(kept.back().step == 19999);
}

TEST_CASE("steps of a source without epochs have no means, and fetch nothing", "[hooks][epoch_mean]") {
  model trained;
  int fetched = 0;
  sw::monitored_session session(trained, sw::epoch_mean_hook{[&](const model::result& at) { return ++fetched, at.loss; }});
  const std::vector<std::vector<int>> source(3, std::vector<int>{1});
  CHECK(session.run_all(source).values.empty());
  CHECK(fetched == 0);
}

TEST_CASE("two values of an epoch_mean_hook need different names", "[hooks][epoch_mean]") {
  CHECK_THROWS_WITH(sw::epoch_mean_hook(&model::result::loss, &model::result::even),
                    ContainsSubstring("two values are named \"loss\"; name them with tag(\"NAME\", value)"));
}
