// SPDX-License-Identifier: Apache-2.0
//
// Loops without a body and hooks made of functions, in asynchronous sessions.
#include "support/async_rig.hpp"
#include "support/catch.hpp"
#include "support/log_capture.hpp"
#include "support/temporary_directory.hpp"

#include <stepwell/data/prefetch.hpp>
#include <stepwell/data/shuffled_batches.hpp>
#include <stepwell/hooks/function_hooks.hpp>
#include <stepwell/hooks/stop_hooks.hpp>
#include <stepwell/session/any_async_session.hpp>
#include <stepwell/training/async_training_session.hpp>

#include <boost/asio/post.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace sw = stepwell;
using namespace std::chrono_literals;
using namespace sw::test;

namespace {

struct batch_model {
  std::int64_t batches = 0;
  std::int64_t step(const std::vector<int>&) { return ++batches; }
  sw::variable_list variables() { return sw::variables({{"batches", batches}}); }
};

/// A model whose results cannot be assigned.
struct constant_results {
  struct result {
    const std::int64_t batches;
  };
  std::int64_t batches = 0;
  result step(const std::vector<int>&) { return {++batches}; }
  sw::variable_list variables() { return sw::variables({{"batches", batches}}); }
};

auto batches_of_ten(std::optional<std::uint64_t> epochs = std::nullopt) {
  return sw::data::shuffled_batches(std::vector<int>(10, 1), {.batch_size = 4, .epochs = epochs});
}

template<class Session, class Source>
asio::awaitable<sw::loop_result<typename Session::result_type>> whole_loop(Session& session, Source& source) {
  co_await session.async_start();
  auto loop = co_await session.async_run_all(source);
  co_await session.async_close();
  co_return loop;
}

/// Starts the session, and closes it after `count` steps. `clock` moves ten seconds after each.
template<class Session, class Source>
asio::awaitable<void> some_steps(Session& session, Source& source, sw::manual_clock& clock, int count) {
  co_await session.async_start();
  for (int i = 0; i < count; ++i) {
    static_cast<void>(co_await session.async_next(source));
    clock.advance(10s);
  }
  co_await session.async_close();
}

template<class Session>
asio::awaitable<sw::loop_result<int>> whole_loop_without_data(Session& session) {
  co_await session.async_start();
  auto loop = co_await session.async_run_all();
  co_await session.async_close();
  co_return loop;
}

template<class Awaitable>
auto result_of(Awaitable work) {
  asio::io_context io;
  auto result = asio::co_spawn(io, std::move(work), asio::use_future);
  io.run();
  return result.get();
}

}  // namespace

TEST_CASE("async_run_all does what run_all does", "[session][async][run_all]") {
  batch_model model;
  sw::async_monitored_session session(sw::training_options(), model);
  auto batches = batches_of_ten(3);
  const auto loop = result_of(whole_loop(session, batches));
  CHECK(loop.steps == 9);
  CHECK(loop.last->value == 9);
  CHECK(loop.why.cause == sw::stop_cause::end_of_data);
}

TEST_CASE("async_run_all assigns no result", "[session][async][run_all]") {
  constant_results model;
  sw::async_monitored_session session(sw::training_options(), model);
  auto batches = batches_of_ten(3);
  CHECK(result_of(whole_loop(session, batches)).last->value.batches == 9);
}

TEST_CASE("async_run_all repeats failed steps like a loop, and a type-erased session has it too", "[session][async][run_all]") {
  async_rig rig;
  rig.model.before = failing_batches{{3}};
  sw::any_async_session<adding_model::result, ending_source> session(rig.async(2));
  ending_source source;
  auto life = [&]() -> asio::awaitable<std::int64_t> {
    co_await session.async_start();
    const auto loop = co_await session.async_run_all(source);
    co_await session.async_close();
    co_return loop.last->global_step;
  };
  CHECK(rig.await(life()) == 5);
  CHECK(same(rig.model, model_after(5)));
}

TEST_CASE("hooks made of functions are called in asynchronous sessions at the same steps", "[session][async][function_hooks]") {
  batch_model model;
  std::vector<std::int64_t> steps;
  const auto note = [&](std::int64_t sign) { return [&steps, sign](auto& context) { steps.push_back(sign * context.global_step()); }; };
  sw::async_monitored_session session(sw::training_options(), model, sw::every_n_steps(2, note(1)), sw::every_epoch(note(-1)),
                                      sw::at_end(note(100)), sw::stop_at_epoch(2));
  auto batches = sw::data::prefetch(batches_of_ten(), {.threads = 2});
  CHECK(result_of(whole_loop(session, batches)).why.text == "epoch 2 is done");
  CHECK(steps == std::vector<std::int64_t>{2, -3, 4, 6, -6, 600});
}

TEST_CASE("the function of every_n_steps takes an optional value in an asynchronous session",
          "[session][async][function_hooks][optional]") {
  batch_model model;
  std::vector<std::int64_t> seen;
  const auto fourth = [](const batch_model& now) { return now.batches % 4 == 0 ? std::optional(now.batches) : std::nullopt; };
  const auto note = [&seen](std::optional<std::int64_t> value) { seen.push_back(value.value_or(-1)); };
  sw::async_monitored_session session(sw::training_options(), model, sw::every_n_steps(2, note, sw::fetch(fourth)));
  auto batches = batches_of_ten(3);
  CHECK(result_of(whole_loop(session, batches)).steps == 9);
  CHECK(seen == std::vector<std::int64_t>{-1, 4, -1, 8});
}

TEST_CASE("in an asynchronous session functions are called after a time, and their state is saved and restored",
          "[session][async][function_hooks]") {
  const log_capture log;
  const temporary_directory directory;
  const auto clock = std::make_shared<sw::manual_clock>();
  const sw::training_options options{.checkpoint_dir = directory.path(), .clock = clock};
  batch_model model;
  const auto seven_steps = [&] {
    std::vector<std::int64_t> timed(5, 0);  // the first elements are the steps of the calls; their number is `count`
    std::int64_t count = 0;
    const auto note = [&](auto& context) { timed.at(static_cast<std::size_t>(count++)) = context.global_step(); };
    const auto state = [&] { return sw::variables({{"timed", timed}, {"count", count}}); };
    auto session = sw::monitored_training_session(sw::defer_start, model, options, sw::every(30s, note, sw::saved_state{"timed", state}));
    auto batches = batches_of_ten();
    result_of(some_steps(session, batches, *clock, 7));
    return timed;
  };
  CHECK(seven_steps() == std::vector<std::int64_t>{4, 7, 0, 0, 0});
  CHECK(seven_steps() == std::vector<std::int64_t>{4, 7, 11, 14, 0});
}

TEST_CASE("async_run_all of a model without data runs until a hook stops it", "[session][async][run_all]") {
  counting_model model;
  sw::async_monitored_session session(sw::training_options(), model, sw::stop_at_step(5));
  const auto loop = result_of(whole_loop_without_data(session));
  CHECK(loop.steps == 5);
  CHECK(loop.last->value == 5);
  CHECK(loop.why.cause == sw::stop_cause::last_step);
  CHECK(model.count == 5);
}
