// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"
#include "support/temporary_directory.hpp"

#include <stepwell/data/shuffled_batches.hpp>
#include <stepwell/data/source.hpp>
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

#include <cstdint>
#include <optional>
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
  result step(const std::vector<int>& /*batch*/) {
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

TEST_CASE("run_all returns the means of the last epoch and the metrics of the last evaluation", "[hooks][epoch_mean]") {
  model trained;
  sw::monitored_session session(trained, means(), evaluation());
  auto source = batches(3);
  CHECK(of(session.run_all(source).values) == values{{"loss", 5.5, 6}, {"even", 6, 6}, {"validation/steps", 4, 4}});
}

TEST_CASE("an awaited run_all returns the same values", "[hooks][epoch_mean]") {
  boost::asio::io_context io;
  model trained;
  auto session = sw::monitored_training_session(sw::defer_start, trained, {}, means(), evaluation());
  auto source = batches(3);
  auto done = boost::asio::co_spawn(io, run_awaited(session, source), boost::asio::use_future);
  io.run();
  CHECK(done.get() == values{{"loss", 5.5, 6}, {"even", 6, 6}, {"validation/steps", 4, 4}});
}

TEST_CASE("the means of a run that continues in the middle of an epoch are those of an uninterrupted run", "[hooks][epoch_mean]") {
  const sw::test::temporary_directory directory;
  const auto run = [&](std::int64_t last_step) {
    model trained;
    auto session =
        sw::monitored_training_session(trained, {.checkpoint_dir = directory.path()}, means(), evaluation(), sw::stop_at_step(last_step));
    auto source = batches(3);
    auto found = of(session.run_all(source).values);
    session.close();
    return found;
  };
  CHECK(run(1).empty());
  CHECK(run(5) == values{{"loss", 3.5, 4}, {"even", 4, 4}, {"validation/steps", 4, 4}});
  CHECK(run(6) == values{{"loss", 5.5, 6}, {"even", 6, 6}, {"validation/steps", 4, 4}});
  CHECK(run(6) == values{{"loss", 5.5, 6}, {"even", 6, 6}, {"validation/steps", 4, 4}});  // no step: the values are in the checkpoint
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
