// SPDX-License-Identifier: Apache-2.0
//
// Tests of models with an asynchronous step: they behave like blocking ones, and the event loop stays free meanwhile.
#include "support/awaited_rig.hpp"
#include "support/catch.hpp"
#include "support/full_raw_session.hpp"
#include "support/log_capture.hpp"
#include "support/shared_model.hpp"
#include "support/thread_group.hpp"

#include <stepwell/hooks/global_step_waiter_hook.hpp>
#include <stepwell/protocol/any_hook.hpp>
#include <stepwell/session/any_async_session.hpp>
#include <stepwell/session/any_session.hpp>

#include <boost/asio/thread_pool.hpp>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
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

// ---- sessions of every kind over a raw session with all optional members

/// A `full_raw_session` whose step is awaited.
struct awaited_full_session : full_raw_session {
  using full_raw_session::full_raw_session;
  template<class... Args>
  static constexpr bool awaits = true;

  asio::awaitable<int> step(std::tuple<>& /*fed*/) {
    calls->emplace_back("run");
    co_await a_turn();
    co_return 0;
  }
};

/// Creates a raw session of a chief or of a worker.
template<class Raw>
struct full_creator {
  story_type* calls;
  bool is_chief = true;

  Raw create_session(sw::session_creation& creation) const {
    Raw raw(*calls);
    const sw::session_manager<Raw> manager;
    if (is_chief) {
      manager.prepare_session(raw, creation);
    } else {
      manager.wait_for_session(raw, creation);
    }
    return raw;
  }
};

struct heating_hook {
  auto before_run(auto& /*context*/) const { return sw::run_args{.feed = sw::feed("heat", 20.0)}; }
};
/// Fetches a value, and fails once, in the second run.
struct reading_hook {
  story_type* calls;
  bool fails;

  auto before_run(auto& /*context*/) const { return sw::fetch(7); }
  void after_run(auto& context, const auto& values) {
    calls->push_back("value " + std::to_string(values.value()));
    if (context.global_step() == 2 && std::exchange(fails, false)) { throw sw::aborted_error("once"); }
  }
};

/// The calls of the raw session in each part of the life of a session over three batches.
struct full_life {
  story_type created = {}, stepped = {}, closed = {};
  bool operator==(const full_life&) const = default;
};

/// Returns a session of the kind `Session` over `Raw`, with hooks that use all that the raw session has.
template<template<class, class...> class Session, class Raw>
auto full_session(story_type& calls, bool is_chief, bool fails, const std::shared_ptr<sw::group>& group = nullptr) {
  sw::training_options options{.retry = {.initial_backoff = 0}, .group = group};
  using read = sw::any_hook<Raw>;
  return Session<Raw, heating_hook, read, sw::global_step_waiter_hook>(options, full_creator<Raw>{&calls, is_chief}, heating_hook{},
                                                                       read(reading_hook{&calls, fails}),
                                                                       sw::global_step_waiter_hook({.wait_until_step = 100}));
}
full_life life_of(auto session, story_type& calls) {
  full_life life{.created = std::exchange(calls, {})};
  ending_source source{3};
  for ([[maybe_unused]] const auto& step : session.steps(source)) {}
  life.stepped = std::exchange(calls, {});
  session.close();
  life.closed = std::exchange(calls, {});
  return life;
}
asio::awaitable<void> await_life(auto& session, story_type& calls, full_life& life) {
  ending_source source{3};
  co_await session.async_start();
  life.created = std::exchange(calls, {});
  for (;;) {
    const auto step = co_await session.async_next(source);
    if (!step) { break; }
  }
  life.stepped = std::exchange(calls, {});
  co_await session.async_close();
  life.closed = std::exchange(calls, {});
}
full_life awaited_life_of(auto session, story_type& calls) {
  full_life life;
  asio::io_context io;
  std::exception_ptr failure;
  asio::co_spawn(io, await_life(session, calls, life), [&](std::exception_ptr ended) { failure = std::move(ended); });
  io.run();
  if (failure) { std::rethrow_exception(failure); }
  return life;
}

}  // namespace

TEST_CASE("sessions of every kind call the optional members of a raw session in the same order, and hold what they return",
          "[session][async][awaited][raw_session]") {
  const bool is_chief = GENERATE(true, false);
  const bool in_group = is_chief && GENERATE(false, true);
  const log_capture log;
  story_type calls;
  thread_job alone(1);
  const auto joined = [&] { return in_group ? alone.join(0) : nullptr; };
  const bool fails = !in_group;  // a group is formed again after a failure, which is no matter of the raw session
  using blocking = full_raw_session;
  using awaited = awaited_full_session;
  const auto life = life_of(full_session<sw::monitored_session, blocking>(calls, is_chief, fails, joined()), calls);

  // what the table promises
  const story_type step{"enter", "fetch 7", "feed", "run", "value 0", "end of feed", "end of enter"};
  CHECK(std::ranges::search(life.stepped, step).begin() != life.stepped.end());
  CHECK(std::ranges::count(life.stepped, "run") == (!fails ? 3 : is_chief ? 5 : 4));  // only a chief goes back to the initial state
  CHECK(std::ranges::count(life.stepped, "read_global_step") > 0);
  CHECK(life.closed.back() == "close");
  if (is_chief && !in_group) {
    CHECK(life.created == story_type{"prepare_as_chief", "pull", "end of pull", "end of prepare_as_chief"});
    CHECK(std::ranges::count(life.stepped, "close") == 1);
    CHECK(std::ranges::count(life.stepped, "push") == 1);
  }
  if (!is_chief) { CHECK(life.created == story_type{"wait_for_chief", "exclusive", "join", "end of exclusive"}); }

  // the same in each kind of session
  using any = sw::any_session<int, ending_source>;
  using any_awaited = sw::any_async_session<int, ending_source>;
  CHECK(life_of(any(full_session<sw::monitored_session, blocking>(calls, is_chief, fails, joined())), calls) == life);
  CHECK(awaited_life_of(full_session<sw::async_monitored_session, blocking>(calls, is_chief, fails, joined()), calls) == life);
  CHECK(awaited_life_of(full_session<sw::async_monitored_session, awaited>(calls, is_chief, fails, joined()), calls) == life);
  CHECK(awaited_life_of(any_awaited(full_session<sw::async_monitored_session, awaited>(calls, is_chief, fails, joined())), calls) == life);
}

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
