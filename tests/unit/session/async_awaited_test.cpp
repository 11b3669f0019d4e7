// SPDX-License-Identifier: Apache-2.0
//
// Tests of models with an asynchronous step: they behave like blocking ones, and the event loop stays free meanwhile.
#include "support/awaited_rig.hpp"
#include "support/catch.hpp"
#include "support/log_capture.hpp"
#include "support/shared_model.hpp"

#include <boost/asio/thread_pool.hpp>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

namespace sw = stepwell;
using namespace sw::test;
using story_type = std::vector<std::string>;

namespace {

asio::awaitable<void> noted_life_of(awaited_session& session, ending_source& source, bool& has_begun) {
  has_begun = true;
  const auto seen = co_await whole_life(session, source);
  static_cast<void>(seen);
}

/// Returns the calls that the hook receives on a blocking model.
story_type story_of_blocking_life(std::multiset<std::int64_t> failures) {
  async_rig rig;
  story_type story;
  ending_source source;
  rig.model.before = failing_batches{std::move(failures)};
  auto session = rig.make<blocking_test_session>(2, {&story});
  for ([[maybe_unused]] const auto& step : session.steps(source)) {}
  session.close();
  return story;
}

/// Returns an action that throws an `Error` once at the point `where`.
template<class Error>
std::function<void(const std::string&)> throwing_at(std::string where) {
  return [where = std::move(where), is_done = false](const std::string& point) mutable {
    if (point == where && !std::exchange(is_done, true)) { throw Error("the hook fails"); }
  };
}
/// A hook that fetches the loss in every second run.
struct fetching_hook {
  std::vector<float>* losses;

  auto before_run(auto& context) {
    return context.global_step() % 2 == 0 ? std::optional(sw::fetch(&adding_model::result::loss)) : std::nullopt;
  }
  void after_run(auto&, const auto& values) {
    if (values.has_value()) { losses->push_back(values.value()); }
  }
};

}  // namespace

TEST_CASE("an awaited model and its hooks have the same calls as blocking ones", "[session][async][awaited]") {
  const auto failures = GENERATE(std::multiset<std::int64_t>{}, std::multiset<std::int64_t>{3}, std::multiset<std::int64_t>{1, 4, 4});
  const bool has_compute = GENERATE(false, true);
  log_capture log;
  awaited_rig rig;
  story_type story;
  ending_source source;
  asio::thread_pool pool(1);
  sw::async_options how;
  if (has_compute) { how.steps_on(pool.get_executor()); }
  rig.awaiting.before = failing_batches{failures};
  auto session = rig.awaited(2, {&story}, how);
  CHECK(rig.await(whole_life(session, source)).back() == 5);
  CHECK(story == story_of_blocking_life(failures));
  CHECK(same(rig.awaiting, model_after(5)));
  CHECK(session.is_closed());
  CHECK(newest_in(rig.directory.path()).step == 5);
}

TEST_CASE("after_run receives the values that the hook fetches of an awaited step", "[session][async][awaited]") {
  awaited_rig rig;
  std::vector<float> losses;
  ending_source source{4};
  using session_type = sw::async_monitored_session<sw::model_session<awaiting_model>, fetching_hook>;
  session_type session(sw::training_options{.clock = rig.clock}, rig.awaiting, fetching_hook{&losses});
  rig.await(whole_life(session, source));
  CHECK(losses == std::vector<float>{1, 6});  // of steps 1 and 3
}

TEST_CASE("a run of its own with a model that is awaited gives its result, and what is fetched", "[session][async][awaited]") {
  awaited_rig rig;
  auto session = rig.awaited(0);
  rig.await(session.async_start());
  const std::int64_t batch = 3;
  CHECK(rig.await(session.async_run(batch)).loss == 3);
  CHECK(rig.await(session.async_run(std::int64_t{4})).loss == 7);
  const auto values = rig.await(session.async_run(sw::fetch(&adding_model::result::batch), batch));
  CHECK(std::get<0>(values) == 3);
  CHECK(rig.await(session.async_run_with<sw::only<>>(sw::feed(&awaiting_model::sum, 100.0F), batch)).loss == 103);
  CHECK(rig.awaiting.sum == 10);  // the feed does not persist
  CHECK(session.global_step() == 4);
}

TEST_CASE("while a step is awaited the event loop is free", "[session][async][awaited]") {
  awaited_rig rig;
  int turns = 0;
  bool is_over = false;
  rig.awaiting.wait = []() -> asio::awaitable<void> {
    for (int i = 0; i < 100; ++i) { co_await a_turn(); }
  };
  auto session = rig.awaited(0);
  rig.await(session.async_start());
  ending_source source{1};
  session.async_next(source, asio::bind_executor(rig.io.get_executor(), [&](const std::exception_ptr&, auto) { is_over = true; }));
  rig.io.restart();
  while (!is_over) {
    rig.io.run_one();
    ++turns;
  }
  CHECK(turns > 100);
}

TEST_CASE("hooks of an awaited step run where steps_on says, the step where the caller awaits", "[session][async][awaited]") {
  awaited_rig rig;
  asio::thread_pool pool(1);
  std::thread::id stepped;
  std::thread::id hooked;
  rig.awaiting.before = [&](std::int64_t) { stepped = std::this_thread::get_id(); };
  awaited_script hook;
  hook.act = [&](const std::string& point) {
    if (point == "after") { hooked = std::this_thread::get_id(); }
  };
  auto session = rig.awaited(0, std::move(hook), sw::async_options().steps_on(pool.get_executor()));
  ending_source source{1};
  rig.await(whole_life(session, source));
  CHECK(stepped == std::this_thread::get_id());
  CHECK(hooked != stepped);
  CHECK(hooked != std::thread::id());
}

TEST_CASE("a hook that fails around an awaited step fails as any: what may pass is recovered from, all else ends the session",
          "[session][async][awaited]") {
  const std::string where = GENERATE("begin", "create", "before", "after", "end");
  log_capture log;
  for (const bool may_pass : {true, false}) {
    awaited_rig rig;
    story_type story;
    ending_source source{3};
    auto session = rig.awaited(1, {&story, may_pass ? throwing_at<sw::aborted_error>(where) : throwing_at<std::logic_error>(where)});
    const bool is_overcome = may_pass && where != "begin" && where != "end";  // these points are called only once
    if (is_overcome) {
      CHECK(rig.await(whole_life(session, source)).back() == 3);
      CHECK(session.metrics().recoveries == 1);
      CHECK(std::ranges::count(story, "begin") == 1);
      CHECK(std::ranges::count(story, "end 3") == 1);
    } else {
      CHECK_THROWS_WITH(rig.await(whole_life(session, source)), ContainsSubstring("the hook fails"));
      CHECK(std::ranges::count(story, "error") == (where == "begin" ? 0 : 1));
      CHECK(session.is_closed() == (where == "end"));
    }
  }
}

TEST_CASE("a cancellation reaches the model's step; then nothing is done", "[session][async][awaited][cancel]") {
  log_capture log;
  awaited_rig rig;
  story_type story;
  bool is_stuck = true;
  rig.awaiting.wait = [&]() -> asio::awaitable<void> {
    if (is_stuck) { co_await for_ever(); }
  };
  auto session = rig.awaited(0, {&story});
  rig.await(session.async_start());
  ending_source source{2};
  asio::cancellation_signal cancel;
  std::exception_ptr failure;
  session.async_next(source,
                     asio::bind_cancellation_slot(
                         cancel.slot(), asio::bind_executor(rig.io.get_executor(), [&](std::exception_ptr how, auto) { failure = how; })));
  rig.io.restart();
  for (int i = 0; i < 30; ++i) { rig.io.poll_one(); }
  CHECK_FALSE(failure);
  cancel.emit(asio::cancellation_type::total);
  rig.io.run();
  CHECK(was_aborted(failure));
  CHECK(session.global_step() == 0);
  CHECK(source.next == 1);
  CHECK(std::ranges::count(story, "error") == 0);
  is_stuck = false;
  CHECK(rig.await(session.async_next(source))->global_step == 1);  // as if the first attempt had never begun
  CHECK(session.metrics().recoveries == 0);
}

TEST_CASE("a cancellation during after_run changes nothing: the step is done, and is delivered", "[session][async][awaited][cancel]") {
  awaited_rig rig;
  asio::cancellation_signal cancel;
  awaited_script hook;
  hook.act = [&](const std::string& point) {
    if (point == "after") { cancel.emit(asio::cancellation_type::terminal); }
  };
  auto session = rig.awaited(0, std::move(hook));
  rig.await(session.async_start());
  ending_source source{2};
  std::exception_ptr failure;
  std::optional<std::int64_t> step;
  session.async_next(source, asio::bind_cancellation_slot(
                                 cancel.slot(), asio::bind_executor(rig.io.get_executor(), [&](std::exception_ptr how, auto made) {
                                   failure = how;
                                   if (made) { step = made->global_step; }
                                 })));
  rig.io.restart();
  rig.io.run();
  CHECK_FALSE(failure);
  CHECK(step == 1);
}

TEST_CASE("an awaited session is abandoned or cancelled after any number of handlers, the model being awaited",
          "[session][async][awaited][abandon][cancel]") {
  enum class end { with_its_loop, before_its_loop, by_cancellation };
  const auto how = GENERATE(end::with_its_loop, end::before_its_loop, end::by_cancellation);
  log_capture log;
  int handlers = 0;
  int aborted = 0;
  for (bool has_ended = false; !has_ended; ++handlers) {
    awaited_rig rig;
    story_type story;
    ending_source source{3};
    rig.awaiting.before = failing_batches{{2}};
    {
      asio::cancellation_signal cancel;
      std::optional<awaited_session> session(rig.awaited(2, {&story}));
      asio::io_context loop;
      bool has_begun = false;
      bool is_done = false;
      std::exception_ptr failure;
      asio::co_spawn(loop, noted_life_of(*session, source, has_begun),
                     asio::bind_cancellation_slot(cancel.slot(), [&](std::exception_ptr how_it_failed) {
                       failure = how_it_failed;
                       is_done = true;
                     }));
      run_handlers(loop, handlers, is_done);
      has_ended = is_done;
      if (how == end::before_its_loop && has_begun && !is_done) {
        session.reset();  // the model may still be awaiting
        loop.run();
        CHECK(was_aborted(failure));
      }
      if (how == end::by_cancellation && !is_done) {
        cancel.emit(asio::cancellation_type::terminal);
        const bool never_began = run_cancelled(loop, handlers);
        REQUIRE((is_done || never_began));
        if (failure) {
          CHECK(was_aborted(failure));
          ++aborted;
        }
      }
    }
    CHECK(std::ranges::count(story, "begin") <= 1);
    rig.settle();
    if (const auto found = newest_in(rig.directory.path()); found.step > 0) { CHECK(same(found.model, model_after(found.step))); }
  }
  CHECK(handlers > 20);
  if (how == end::by_cancellation) { CHECK(aborted > 10); }
}

TEST_CASE("a step that is awaited is refused at a master, where others would wait for it", "[session][async][awaited][master]") {
  awaited_rig rig;
  using raw = sw::model_session<awaiting_model>;
  ending_source source{1};
  sw::async_monitored_session<raw, awaited_script> session(sw::training_options{.retry = {.max_attempts = 0}, .clock = rig.clock},
                                                           raw(rig.awaiting, {.master = "local:awaited"}), {});
  log_capture log;
  CHECK_THROWS_WITH(rig.await(whole_life(session, source)), ContainsSubstring("cannot run on a shared master"));
  CHECK(source.next == 1);
}
