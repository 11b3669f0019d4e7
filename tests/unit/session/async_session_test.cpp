// SPDX-License-Identifier: Apache-2.0
//
// Tests that a loop over an asynchronous session behaves like the loop over a blocking session.
#include "support/async_rig.hpp"
#include "support/catch.hpp"
#include "support/gate.hpp"
#include "support/log_capture.hpp"

#include <stepwell/session/any_async_session.hpp>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_future.hpp>

#include <cstdint>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <type_traits>
#include <vector>

namespace sw = stepwell;
using namespace sw::test;
using story_type = std::vector<std::string>;

namespace {

/// Returns the calls that the hooks of a blocking session receive in the same run.
story_type story_of_blocking_life(std::multiset<std::int64_t> failures, std::int64_t last, std::int64_t every) {
  async_rig rig;
  story_type story;
  rig.model.before = failing_batches{std::move(failures)};
  auto session = [&] {
    auto saver = rig.saver_hook(every);
    auto with = rig.setup;
    with.find_checkpoint = saver.checkpoint_finder();
    return blocking_test_session(std::move(with), rig.model, std::move(saver), scripted_hook{&story});
  }();
  ending_source source{last};
  for ([[maybe_unused]] const auto& step : session.steps(source)) {}
  session.close();
  return story;
}

asio::awaitable<void> start(async_test_session& session) { co_await session.async_start(); }
asio::awaitable<std::int64_t> steps_of_sequence(async_test_session& session, ending_source& source, std::int64_t at_most) {
  std::int64_t taken = 0;
  auto steps = session.async_steps(source);
  for (; taken < at_most; ++taken) {
    const auto step = co_await steps.next();
    if (!step) { break; }
  }
  co_return taken;
}

/// The value of a step, with results of several sizes.
struct one_float {
  float first;
  explicit one_float(std::int64_t step = 0) : first(static_cast<float>(step)) {}
  friend bool operator==(const one_float&, const one_float&) = default;
};
struct two_ints {
  int first;
  int second;
  explicit two_ints(std::int64_t step = 0) : first(static_cast<int>(step)), second(-first) {}
  friend bool operator==(const two_ints&, const two_ints&) = default;
};
struct two_doubles {
  double first;
  double second;
  explicit two_doubles(std::int64_t step = 0) : first(static_cast<double>(step)), second(-first) {}
  friend bool operator==(const two_doubles&, const two_doubles&) = default;
};
struct some_text {
  std::string text;
  explicit some_text(std::int64_t step = 0) : text(40, static_cast<char>('a' + step)) {}
  friend bool operator==(const some_text&, const some_text&) = default;
};

/// A model whose result depends on the number of the step.
template<class Result>
struct numbered_model {
  std::int64_t steps = 0;
  Result step() { return Result(++steps); }
  sw::variable_list variables() { return sw::variables({{"steps", steps}}); }
};

asio::awaitable<void> check_values(auto& session, auto* result) {
  co_await session.async_start();
  for (std::int64_t expected = 1; expected <= 3; ++expected) {
    const auto step = co_await session.async_next();
    REQUIRE(step.has_value());
    CHECK(step->value == std::remove_pointer_t<decltype(result)>(expected));
    CHECK(step->global_step == expected);
    CHECK(step->attempt == 1);
    CHECK_FALSE(step->rolled_back_from.has_value());
  }
  co_await session.async_close();
}

}  // namespace

TEMPLATE_TEST_CASE("an awaited step has the values of its run, whatever the size of the result", "[session][async]", one_float, two_ints,
                   two_doubles, some_text) {
  asio::io_context loop;
  numbered_model<TestType> model;
  sw::async_monitored_session<sw::model_session<numbered_model<TestType>>> session(sw::training_options(), model);
  auto done = asio::co_spawn(loop, check_values(session, static_cast<TestType*>(nullptr)), asio::use_future);
  loop.run();
  done.get();
}

TEST_CASE("an awaited session does what a blocking one does, call by call", "[session][async]") {
  const auto failures = GENERATE(std::multiset<std::int64_t>{}, std::multiset<std::int64_t>{3}, std::multiset<std::int64_t>{1, 4, 4});
  log_capture log;
  async_rig rig;
  story_type story;
  ending_source source;
  rig.model.before = failing_batches{failures};
  auto session = rig.async(2, {&story});
  const auto seen = rig.await(whole_life(session, source));
  CHECK(seen.back() == 5);
  CHECK(story == story_of_blocking_life(failures, 5, 2));
  CHECK(same(rig.model, model_after(5)));
  CHECK(session.stop_reason().cause == sw::stop_cause::end_of_data);
  CHECK(session.is_closed());
  CHECK(newest_in(rig.directory.path()).step == 5);
}

TEST_CASE("nothing begins before async_start, which restores; hooks and model can be looked at", "[session][async]") {
  async_rig rig;
  {
    ending_source source{3};
    auto first = rig.async(1);
    rig.await(whole_life(first, source));
  }
  rig.model = adding_model();
  story_type story;
  auto session = rig.async(1, {&story});
  CHECK(story.empty());
  CHECK_FALSE(session.is_started());
  CHECK_FALSE(session.should_stop());
  CHECK(session.hook<scripted_hook>().story == &story);
  CHECK(&session.subject() == &rig.model);
  ending_source source;
  CHECK_THROWS_WITH(rig.await(all_steps(session, source)), ContainsSubstring("await async_start() first"));
  rig.await(start(session));
  CHECK(story == story_type{"begin", "create 3"});
  CHECK(session.is_started());
  CHECK(session.global_step() == 3);
  CHECK(session.restored_from() == rig.directory.path() + "/model.ckpt-3");
  CHECK(rig.await(all_steps(session, source)) == std::vector<std::int64_t>{4, 5});  // the source continued at its saved position
  CHECK(same(rig.model, model_after(5)));
  CHECK_THROWS_WITH(rig.await(start(session)), ContainsSubstring("started already"));
}

TEST_CASE("each function takes callbacks and futures as well as use_awaitable", "[session][async]") {
  async_rig rig;
  ending_source source{2};
  auto session = rig.async(1);
  const auto on_io = [&](auto callback) { return asio::bind_executor(rig.io.get_executor(), std::move(callback)); };
  const auto thread = std::this_thread::get_id();
  int calls = 0;
  const auto note = [&](const std::exception_ptr& failure) {
    ++calls;
    CHECK_FALSE(failure);
    CHECK(std::this_thread::get_id() == thread);
  };
  session.async_start(on_io(note));
  CHECK(calls == 0);  // never called within the initiating function
  rig.io.run();
  CHECK(calls == 1);
  std::optional<test_step> step;
  session.async_next(source, on_io([&](const std::exception_ptr& failure, std::optional<test_step> made) { note(failure), step = made; }));
  rig.io.restart(), rig.io.run();
  CHECK(step->global_step == 1);
  float loss = 0;
  session.async_run(std::int64_t{7},
                    on_io([&](const std::exception_ptr& failure, adding_model::result made) { note(failure), loss = made.loss; }));
  rig.io.restart(), rig.io.run();
  CHECK(loss == 8);
  std::int64_t saved = 0;
  session.async_checkpoint_now(on_io([&](const std::exception_ptr& failure, std::int64_t at) { note(failure), saved = at; }));
  rig.io.restart(), rig.io.run();
  CHECK(saved == 2);
  CHECK(calls == 4);

  auto future = session.async_next(source, asio::use_future);  // runs on the system executor
  CHECK(future.get()->global_step == 3);
  auto steps = session.async_steps(source);
  CHECK_FALSE(steps.next(asio::use_future).get());
  auto closed = session.async_close(asio::use_future);
  closed.get();
  CHECK(session.is_closed());
  CHECK_NOTHROW(session.async_close(asio::use_future).get());  // a second close does nothing (decision D-15)
  CHECK_THROWS_AS(session.async_run(std::int64_t{7}, asio::use_future).get(), sw::failed_precondition_error);
}

namespace {
asio::awaitable<void> run_all_ways(async_test_session& session) {
  co_await session.async_start();
  const auto batch = std::int64_t{2};
  const auto plain = co_await session.async_run(batch);
  CHECK(plain.loss == 2);
  const auto [loss, weights] = co_await session.async_run(sw::fetch(&adding_model::result::loss, &adding_model::weights), std::int64_t{3});
  CHECK(loss == 5);
  CHECK(weights == std::vector<float>{3, 4, 5});
  const std::vector<float> one(1, 7.0F);  // a named value: no initializer list inside an awaited expression
  const auto [fed] = co_await session.async_run(std::int64_t{1}, sw::fetch(&adding_model::result::loss),
                                                sw::feed(&adding_model::weights, one), asio::use_awaitable);
  CHECK(fed == 6);
  const auto [failure, made] = co_await session.async_run(std::int64_t{4}, asio::as_tuple(asio::use_awaitable));
  CHECK_FALSE(failure);
  CHECK(made.loss == 10);
  const auto unseen = co_await session.async_run_with<sw::only<>>(std::int64_t{1});
  CHECK(unseen.loss == 11);
}
}  // namespace

TEST_CASE("async_run has the vocabulary of run: fetches, feeds, hooks chosen", "[session][async]") {
  async_rig rig;
  story_type story;
  auto session = rig.async(0, {&story});
  rig.await(run_all_ways(session));
  CHECK(story.back() == "after 4");
  CHECK(rig.model.weights == std::vector<float>{5, 6, 7});  // the fed values are removed after the run
}

TEST_CASE("async_steps releases its source when it is destroyed, and the same source can continue", "[session][async]") {
  async_rig rig;
  ending_source source;
  auto session = rig.async(0);
  rig.await(start(session));
  CHECK(rig.await(steps_of_sequence(session, source, 2)) == 2);
  CHECK(source.next == 3);
  CHECK(rig.await(steps_of_sequence(session, source, 9)) == 3);
  CHECK(session.global_step() == 5);
}

TEST_CASE("a stop that a hook, the caller or another thread requests ends the awaited loop", "[session][async]") {
  async_rig rig;
  ending_source source{100};
  scripted_hook hook;
  hook.after = [](auto& context) {
    if (context.global_step() == 3) { context.request_stop(); }
  };
  auto session = rig.async(0, hook);
  CHECK(rig.await(whole_life(session, source)).size() == 3);
  CHECK(session.stop_reason().cause == sw::stop_cause::requested);

  auto other = rig.async(0);
  rig.await(start(other));
  other.request_stop("enough");
  CHECK(rig.await(all_steps(other, source)).empty());
  CHECK(other.stop_reason().text == "enough");
}

TEST_CASE("a failure is thrown where it is awaited, and a close throws the first failure of an end", "[session][async]") {
  log_capture log;
  async_rig rig;
  ending_source source;
  story_type story;
  rig.model.before = [](std::int64_t batch) {
    if (batch == 2) { throw std::runtime_error("no such batch"); }
  };
  scripted_hook hook{&story, [](const std::string& point) {
                       if (point == "end") { throw std::runtime_error("cannot end"); }
                     }};
  auto session = rig.async(0, hook);
  CHECK_THROWS_WITH(rig.await(whole_life(session, source)), "no such batch");
  CHECK(story.back() == "error");
  CHECK(session.stop_reason().cause == sw::stop_cause::error);
  CHECK(session.global_step() == 1);
  CHECK_THROWS_WITH(rig.await(session.async_close()), "cannot end");
  CHECK(session.is_closed());
}

TEST_CASE("a start that fails leaves a session of no further use", "[session][async]") {
  log_capture log;
  async_rig rig;
  auto session = rig.async(0, {nullptr, [](const std::string& point) {
                                 if (point == "begin") { throw std::runtime_error("cannot begin"); }
                               }});
  CHECK_THROWS_WITH(rig.await(start(session)), "cannot begin");
  CHECK_THROWS_WITH(rig.await(start(session)), ContainsSubstring("an earlier start of this session failed"));
}

TEST_CASE("async_checkpoint_now saves between two due checkpoints, and says when there is nobody to save", "[session][async]") {
  async_rig rig;
  ending_source source{3};
  auto session = rig.async(100);
  rig.await(start(session));
  rig.await(all_steps(session, source));
  CHECK(rig.await(session.async_checkpoint_now()) == 3);
  CHECK(rig.steps() == "0 3");
  CHECK(rig.await(session.async_checkpoint_now()) == 3);  // already saved
  CHECK(rig.steps() == "0 3");
  auto without = rig.async(0);
  rig.await(start(without));
  CHECK_THROWS_WITH(rig.await(without.async_checkpoint_now()), ContainsSubstring("no hook of this session saves"));
}

namespace {
asio::awaitable<void> two_at_once(async_test_session& session, ending_source& source, gate& disk) {
  co_await session.async_start();
  auto executor = co_await asio::this_coro::executor;
  auto first = asio::co_spawn(executor, session.async_checkpoint_now(), asio::use_future);
  co_await asio::post(asio::use_awaitable);
  CHECK_THROWS_WITH(co_await session.async_next(source), ContainsSubstring("await one at a time"));
  disk.open();
  while (first.wait_for(std::chrono::seconds(0)) != std::future_status::ready) { co_await asio::post(asio::use_awaitable); }
  CHECK(first.get() == 0);
}
}  // namespace

TEST_CASE("a second operation while one is under way is refused, and the first is not harmed", "[session][async]") {
  async_rig rig;
  ending_source source;
  gate disk;
  disk.close();
  rig.files->before_each([&](const event& what) {
    if (what.kind == operation::write && what.path.find("ckpt-0") != std::string::npos) { disk.pass(); }
  });
  auto session = rig.async(1);
  rig.await(two_at_once(session, source, disk));
}

TEST_CASE("a session can be moved between two awaited calls", "[session][async]") {
  static_assert(std::is_nothrow_move_constructible_v<async_test_session> && !std::is_copy_constructible_v<async_test_session>);
  async_rig rig;
  ending_source source;
  auto session = rig.async(0);
  rig.await(start(session));
  auto moved = std::move(session);
  CHECK(rig.await(all_steps(moved, source)).size() == 5);
}

TEST_CASE("each function of an awaited session that was moved from throws at once", "[session][async]") {
  async_rig rig;
  ending_source source;
  const std::int64_t batch = 1;
  const auto check = [&](auto& from) {
    CHECK_THROWS_AS(from.async_start(), sw::failed_precondition_error);
    CHECK_THROWS_AS(from.async_next(source), sw::failed_precondition_error);
    CHECK_THROWS_AS(from.async_run_all(source), sw::failed_precondition_error);
    CHECK_THROWS_AS(from.async_run(batch), sw::failed_precondition_error);
    CHECK_THROWS_AS(from.async_checkpoint_now(), sw::failed_precondition_error);
    CHECK_THROWS_AS(from.async_close(), sw::failed_precondition_error);
    CHECK_THROWS_AS(from.async_abandon(), sw::failed_precondition_error);
    CHECK_THROWS_AS(from.should_stop(), sw::failed_precondition_error);
    CHECK_THROWS_AS(from.request_stop(), sw::failed_precondition_error);
    CHECK_THROWS_AS(from.global_step(), sw::failed_precondition_error);
    CHECK_THROWS_AS(from.is_closed(), sw::failed_precondition_error);
    CHECK_FALSE(from.came_from_hook(nullptr));
  };
  auto session = rig.async(0);
  auto moved = std::move(session);
  check(session);  // NOLINT(bugprone-use-after-move)
  CHECK_THROWS_AS(session.async_steps(source), sw::failed_precondition_error);
  CHECK_THROWS_AS(session.async_snapshot(), sw::failed_precondition_error);
  CHECK_THROWS_AS(session.release_handle(), sw::failed_precondition_error);
  session.release(source);
  using erased = sw::any_async_session<adding_model::result, ending_source>;
  erased first(std::move(moved));
  erased second(std::move(first));
  check(first);  // NOLINT(bugprone-use-after-move)
  rig.await(second.async_start());
  CHECK(rig.await(all_steps(second, source)).size() == 5);
}
