// SPDX-License-Identifier: Apache-2.0
//
// Tests that sessions of every kind call each optional member of a raw session as the table in protocol/raw_session.hpp promises: blocking,
// awaited and type-erased sessions, those of a chief, of a worker and of a group, before and after a recovery. This file does not compile if
// it has no promise for a member of the table.
#include "support/async_rig.hpp"
#include "support/catch.hpp"
#include "support/log_capture.hpp"
#include "support/plain_raw_session.hpp"
#include "support/thread_group.hpp"

#include <stepwell/base/detail/function_ref.hpp>
#include <stepwell/creation/session_creator.hpp>
#include <stepwell/hooks/function_hooks.hpp>
#include <stepwell/hooks/global_step_waiter_hook.hpp>
#include <stepwell/protocol/any_hook.hpp>
#include <stepwell/protocol/raw_session.hpp>
#include <stepwell/session/any_async_session.hpp>
#include <stepwell/session/any_session.hpp>

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace sw = stepwell;
using namespace sw::test;

namespace {

// ---- Raw sessions with all optional members of the table, which record their calls.

using story_type = std::vector<std::string>;

/// The subject of a raw session. The raw session of a chief loses its state in `close`. Has the members that the defaults of a scaffold call.
struct trained {
  static constexpr std::int64_t lost = -1;

  mutable story_type calls = {};
  std::int64_t weight = lost;  // the variable: each step adds 1
  std::int64_t steps = 0;
  std::int64_t fails_after = lost;  // the step after which one run fails
  bool is_chief = true;
  bool has_other_sessions = false;
  bool is_ready = false;
  std::thread::id runs_on = {};
  bool is_awaited = false;

  void note(std::string call) const { calls.push_back(std::move(call)); }
  /// Records `call`, and the end of the lifetime of the result.
  [[nodiscard]] std::shared_ptr<void> during(const std::string& call) {
    note(call);
    return std::shared_ptr<void>(nullptr, [this, call](std::nullptr_t) { note("end of " + call); });
  }
  std::int64_t run() {
    note("run");
    runs_on = std::this_thread::get_id();
    if (steps == fails_after) {
      fails_after = lost;
      throw sw::aborted_error("once");
    }
    return ++weight;
  }

  void init_variables() {
    note("init_variables");
    weight = 0;
  }
  void init_local_variables() { note("init_local_variables"); }
  [[nodiscard]] story_type uninitialized_variables() const {
    note("uninitialized_variables");
    return weight == lost ? story_type{"weight"} : story_type{};
  }
  [[nodiscard]] story_type uninitialized_local_variables() const {
    note("uninitialized_local_variables");
    return {};
  }
};
/// An argument that a run takes only as an rvalue.
struct rvalue_only {};

/// The members of both raw sessions below.
template<bool Awaited>
struct recording_raw {
  using result_type = std::int64_t;
  using outcome_type = sw::run_outcome<std::int64_t>;
  using fetch_key = int;
  template<class... Args>
  static constexpr bool takes = sizeof...(Args) <= 1 && !(std::same_as<Args, rvalue_only&> || ...);
  template<class... Args>
  static constexpr bool awaits = Awaited;

  explicit recording_raw(trained& given) : of(&given) {}

  std::shared_ptr<void> enter(const auto& request) {
    auto scope = of->during("enter");
    request.for_each_fetch([this](int key) { of->note("fetch " + std::to_string(key)); });
    return scope;
  }
  std::int64_t read(const outcome_type& done, int fetch) const {
    of->note("read " + std::to_string(fetch));
    return done.result;
  }
  trained& subject() { return *of; }
  void close() {
    of->note("close");
    if (of->is_chief) { of->weight = trained::lost, of->steps = 0; }
  }
  [[nodiscard]] std::int64_t global_step() const { return of->steps; }
  [[nodiscard]] bool is_shared() const { return of->has_other_sessions; }
  auto exclusive() { return of->during("exclusive"); }
  [[nodiscard]] std::int64_t read_global_step() const {
    of->note("read_global_step");
    return of->steps + 100;  // with the steps of other sessions
  }
  std::int64_t prepare_as_chief(sw::function_ref<bool()> make_ready) {
    const auto preparing = of->during("prepare_as_chief");
    of->is_ready = make_ready();
    return of->steps;
  }
  [[nodiscard]] bool is_chief_ready() const { return of->is_ready; }
  bool wait_for_chief(sw::session_signals& /*signals*/, sw::clock& /*time*/, sw::clock::time_point /*until*/) {
    of->note("wait_for_chief");
    of->weight = std::max<std::int64_t>(of->weight, 0);
    return of->is_ready = true;
  }
  void join() { of->note("join"); }

  std::conditional_t<Awaited, asio::awaitable<std::int64_t>, std::int64_t> step(std::tuple<>& /*fed*/) {
    if constexpr (Awaited) {
      return run_after_a_turn(of);
    } else {
      return of->run();
    }
  }
  outcome_type count(std::int64_t before, std::int64_t result) { return {result, before, ++of->steps}; }

  trained* of;

private:
  static asio::awaitable<std::int64_t> run_after_a_turn(trained* of) {
    co_await asio::post(asio::use_awaitable);
    of->is_awaited = true;
    co_return of->run();
  }
};
/// A raw session whose variable is in another process: it is pulled, pushed and fed.
template<bool Awaited>
struct pulled_raw : recording_raw<Awaited> {
  using recording_raw<Awaited>::recording_raw;
  using typename recording_raw<Awaited>::outcome_type;

  auto feed(const auto& /*request*/) { return this->of->during("feed"); }
  outcome_type run(const auto& request, const auto&... batch) {
    static_cast<void>(this->fed(request, batch...));
    const auto before = this->of->steps;
    return this->count(before, this->of->run());
  }
  std::tuple<> fed(const auto& /*request*/, const auto&... /*batch*/) { return {}; }
  auto pull() {
    weight = this->of->weight;
    return this->of->during("pull");
  }
  void push() {
    this->of->note("push");
    this->of->weight = weight;
  }
  sw::variable_list variables() { return sw::variables({{"weight", weight}, {"global_step", this->of->steps}}); }

  std::int64_t weight = trained::lost;
};
/// A raw session with a fence, whose run reads its feeds.
template<bool Awaited>
struct fenced_raw : recording_raw<Awaited> {
  using recording_raw<Awaited>::recording_raw;
  using typename recording_raw<Awaited>::outcome_type;
  static constexpr bool reads_feeds = true;

  outcome_type run(const auto& request, const auto&... batch) {
    static_cast<void>(this->fed(request, batch...));
    const auto before = this->of->steps;
    return this->count(before, this->of->run());
  }
  std::tuple<> fed(const auto& request, const auto&... /*batch*/) {
    request.for_each_feed([this](std::string_view key, double) { this->of->note("fed " + std::string(key)); });
    fence_of_all->wait();
    return {};
  }
  sw::update_fence& fence() {
    this->of->note("fence");
    return *fence_of_all;
  }
  sw::variable_list variables() {
    return {sw::variable_ref("weight", this->of->weight), sw::variable_ref("global_step", this->of->steps).early()};
  }

  std::unique_ptr<sw::update_fence> fence_of_all = std::make_unique<sw::update_fence>();
};

/// Calls `check.template operator()<Line>()` for each line of the table. Returns true if all results are true.
template<class Check, int... Line>
constexpr bool for_each_member(Check check, std::integer_sequence<int, Line...> /*lines*/) {
  for (const bool holds : {check.template operator()<Line>()...}) {  // no fold expression: clang limits its nesting
    if (!holds) { return false; }
  }
  return true;
}
template<class Check>
constexpr bool for_each_member(Check check) {
  return for_each_member(
      [check]<int Line>() {
        if constexpr (requires { sw::detail::optional_member<Line>::name; }) {
          return check.template operator()<sw::detail::optional_member<Line>>();
        } else {
          return true;
        }
      },
      std::make_integer_sequence<int, 500>());
}
// fails if a new member of the table is not in the raw sessions above
static_assert(for_each_member([]<class Member>() {
  return Member::template is_in<pulled_raw<false>> || Member::template is_in<fenced_raw<false>> || Member::template is_in<trained>;
}));
static_assert(for_each_member([]<class Member>() { return !Member::template is_in<plain_raw_session>; }));

// ---- Sessions of every kind, and their lives.

struct kind {
  bool is_chief = true;
  bool in_group = false;
  bool is_shared = false;
};
/// The calls of the raw session in each part of the life of a session.
struct life {
  kind of = {};
  bool has_pull = false;
  bool is_async = false;
  bool awaits = false;        // the raw session has an awaited step
  bool is_awaited = false;    // the step was awaited
  bool is_known = false;      // the session is not type-erased
  story_type created = {};    // by the creation
  story_type stepped = {};    // by three steps, of which the second one fails at first, and a recovery
  story_type asked = {};      // by two runs, the second of which is without hooks
  story_type copied = {};     // by a snapshot
  story_type refused = {};    // by a run that fails and must not be repeated
  story_type closed = {};     // by the close
  std::int64_t weight = 0;    // after all steps
  bool gets_subject = false;  // a hook
  std::thread::id runs_on = {};
};

/// Creates the raw session of a chief or of a worker.
template<class Raw>
struct recording_creator {
  trained* of;

  Raw create_session(sw::session_creation& creation) const {
    of->is_ready = of->is_ready && !of->is_chief;
    sw::scaffold<trained> with;
    with.finalize();
    Raw raw(*of);
    const sw::session_manager<Raw> manager({with.local_init_op(), with.ready_op(), with.ready_for_local_init_op(), 0});
    if (of->is_chief) {
      manager.prepare_session(raw, creation, {}, {with.init_op(), with.init_fn()});
    } else {
      manager.wait_for_session(raw, creation);
    }
    return raw;
  }
};
struct feeding_hook {
  auto before_run(auto& /*context*/) const { return sw::run_args{.feed = sw::feed("rate", 20.0)}; }
};
struct reading_hook {
  auto before_run(auto& /*context*/) const { return sw::fetch(7); }
  void after_run(auto& /*context*/, const auto& values) { static_cast<void>(values.value()); }
};
using subject_hook = sw::final_ops_hook<std::function<bool(trained&)>>;

/// The directory, the clock, the group and the subject of one life.
struct life_rig {
  explicit life_rig(kind of) : how(of) {
    subject.is_chief = of.is_chief;
    subject.has_other_sessions = of.is_shared;
  }
  /// Returns a session of the type `Session` over `Raw`.
  template<template<class, class...> class Session, class Raw>
  auto session() {
    auto saver = sw::checkpoint_saver_hook::off();
    sw::session_setup setup{.options = {.retry = {.initial_backoff = 0}, .group = how.in_group ? job.join(0) : nullptr, .clock = clock},
                            .restores_what_it_saves = how.is_chief};
    if (how.is_chief) {
      saver = sw::checkpoint_saver_hook({.checkpoint_dir = directory.path(), .save_steps = 1, .saver = {.clock = clock}});
      setup.find_checkpoint = saver.checkpoint_finder();
    }
    subject_hook at_end([this](trained& given) {
      given.note("final op");
      return &given == &subject;
    });
    return Session<Raw, feeding_hook, sw::any_hook<Raw>, sw::global_step_waiter_hook, sw::checkpoint_saver_hook, subject_hook>(
        std::move(setup), recording_creator<Raw>{&subject}, feeding_hook{}, sw::any_hook<Raw>(reading_hook{}),
        sw::global_step_waiter_hook({.wait_until_step = 100}), std::move(saver), std::move(at_end));
  }
  story_type take() { return std::exchange(subject.calls, {}); }

  kind how;
  temporary_directory directory;
  std::shared_ptr<sw::manual_clock> clock = std::make_shared<sw::manual_clock>();
  thread_job job = thread_job(1);
  trained subject;
};

// The ways to do three steps, of which the second one fails once.

constexpr auto in_loop = [](auto& session) {
  ending_source source{3};
  for ([[maybe_unused]] const auto& step : session.steps(source)) {}
};
constexpr auto by_next = [](auto& session) {
  ending_source source{3};
  while (session.next(source)) {}
};
constexpr auto all_at_once = [](auto& session) {
  ending_source source{3};
  session.run_all(source);
};
constexpr auto by_run = [](auto& session) {
  for (std::int64_t batch = 1; batch <= 3; ++batch) { session.run(batch); }
};
constexpr auto in_step_fn = [](auto& session) {
  for (std::int64_t batch = 1; batch <= 3; ++batch) {
    session.run_step_fn([&](auto& context) { context.run_with_hooks(batch); });
  }
};

constexpr auto awaited_next = [](auto& session) -> asio::awaitable<void> {
  ending_source source{3};
  const auto seen = co_await all_steps(session, source);
  static_cast<void>(seen);
};
constexpr auto awaited_steps = [](auto& session) -> asio::awaitable<void> {
  ending_source source{3};
  auto steps = session.async_steps(source);
  for (;;) {
    const auto step = co_await steps.next();
    if (!step) { break; }
  }
};
constexpr auto awaited_all = [](auto& session) -> asio::awaitable<void> {
  ending_source source{3};
  const auto end = co_await session.async_run_all(source);
  static_cast<void>(end);
};
constexpr auto awaited_run = [](auto& session) -> asio::awaitable<void> {
  for (std::int64_t batch = 1; batch <= 3; ++batch) { co_await session.async_run(batch); }
};
struct awaited_step_fn {
  std::int64_t batch;
  asio::awaitable<void> operator()(auto& context) const { co_await context.async_run_with_hooks(batch); }
};
constexpr auto in_awaited_step_fn = [](auto& session) -> asio::awaitable<void> {
  for (std::int64_t batch = 1; batch <= 3; ++batch) {
    const awaited_step_fn step_fn{batch};
    co_await session.async_run_step_fn(step_fn);
  }
};

/// True if the session is not type-erased.
template<class Session>
concept known_session = requires { typename Session::raw_type; };

/// The record of a life, and the parts that blocking and awaited sessions have in common.
template<class Session>
struct living : life {
  living(life_rig& of_session, life expected) : life(std::move(expected)), place(of_session) {
    of = place.how;
    is_known = known_session<Session>;
  }

  void is_created() {
    created = place.take();
    place.subject.fails_after = 1;
  }
  void has_stepped() {
    stepped = place.take();
    weight = place.subject.weight;
  }
  void has_asked() {
    asked = place.take();
    weight = place.subject.weight;
  }
  void has_copied() {
    copied = place.take();
    place.subject.fails_after = place.subject.steps;
  }
  void is_refused() { refused = place.take(); }
  void is_over(Session& session) {
    closed = place.take();
    runs_on = place.subject.runs_on;
    is_awaited = place.subject.is_awaited;
    if constexpr (known_session<Session>) { gets_subject = std::get<0>(session.template hook<subject_hook>().final_ops_values().value()); }
  }

  life_rig& place;
};

template<class Session, class Way>
life life_of(Session session, life_rig& place, life expected, Way way) {
  living<Session> seen(place, std::move(expected));
  seen.is_created();
  way(session);
  seen.has_stepped();
  if constexpr (known_session<Session>) {
    std::int64_t batch = 4;
    session.run(sw::fetch(9), batch);
    session.template run_with<sw::only<>>(batch);
    seen.has_asked();
    static_cast<void>(session.snapshot());
    seen.has_copied();
    CHECK_THROWS_AS(session.run(rvalue_only()), sw::aborted_error);
    seen.is_refused();
  }
  session.close();
  seen.is_over(session);
  return seen;
}
template<class Session, class Way>
asio::awaitable<void> await_life(Session& session, living<Session>& seen, Way way) {
  co_await session.async_start();
  seen.is_created();
  co_await way(session);
  seen.has_stepped();
  if constexpr (known_session<Session>) {
    std::int64_t batch = 4;
    co_await session.async_run(sw::fetch(9), batch);
    co_await session.template async_run_with<sw::only<>>(batch);
    seen.has_asked();
    const auto copy = co_await session.async_snapshot();
    seen.has_copied();
    bool is_thrown = false;
    try {
      rvalue_only given;
      co_await session.async_run(std::move(given));
    } catch (const sw::aborted_error&) { is_thrown = true; }
    CHECK(is_thrown);
    seen.is_refused();
  }
  co_await session.async_close();
  seen.is_over(session);
}
template<class Session, class Way>
life awaited_life_of(Session session, life_rig& place, life expected, Way way) {
  living<Session> seen(place, std::move(expected));
  asio::io_context io;
  auto done = asio::co_spawn(io, await_life(session, seen, way), asio::use_future);
  io.run();
  done.get();
  return seen;
}

/// Calls `check(way, life)` with the life of a session of each kind over raw sessions of the template `RawOf`.
template<template<bool> class RawOf, class Check>
void for_each_life(kind of, Check check) {
  using blocking = RawOf<false>;
  using awaited = RawOf<true>;
  const life plain{.has_pull = sw::detail::has_pull<blocking>};
  life async = plain;
  async.is_async = true;
  using any = sw::any_session<std::int64_t, ending_source>;
  using any_awaited = sw::any_async_session<std::int64_t, ending_source>;
  const auto blocks = [&](const char* name, auto way) {
    life_rig place(of);
    check(name, life_of(place.session<sw::monitored_session, blocking>(), place, plain, way));
  };
  const auto blocks_erased = [&](const char* name, auto way) {
    life_rig place(of);
    check(name, life_of(any(place.session<sw::monitored_session, blocking>()), place, plain, way));
  };
  const auto waits = [&]<class Raw>(std::type_identity<Raw> /*type*/, const char* name, auto way) {
    life_rig place(of);
    auto expected = async;
    expected.awaits = std::is_same_v<Raw, awaited>;
    check(name, awaited_life_of(place.session<sw::async_monitored_session, Raw>(), place, expected, way));
  };
  const auto waits_erased = [&](const char* name, auto way) {
    life_rig place(of);
    check(name, awaited_life_of(any_awaited(place.session<sw::async_monitored_session, blocking>()), place, async, way));
  };
  blocks("steps", in_loop);
  blocks("next", by_next);
  blocks("run_all", all_at_once);
  blocks("run", by_run);
  blocks("run_step_fn", in_step_fn);
  blocks_erased("steps of any_session", in_loop);
  blocks_erased("next of any_session", by_next);
  blocks_erased("run_all of any_session", all_at_once);
  blocks_erased("run of any_session", by_run);
  constexpr std::type_identity<blocking> at_once{};
  constexpr std::type_identity<awaited> later{};
  waits(at_once, "async_next", awaited_next);
  waits(at_once, "async_steps", awaited_steps);
  waits(at_once, "async_run_all", awaited_all);
  waits(at_once, "async_run", awaited_run);
  waits(at_once, "async_run_step_fn", in_awaited_step_fn);
  waits_erased("async_next of any_async_session", awaited_next);
  waits_erased("async_run_all of any_async_session", awaited_all);
  waits_erased("async_run of any_async_session", awaited_run);
  if (of.is_shared) { return; }  // an awaited step cannot be shared
  waits(later, "async_next, step awaited", awaited_next);
  waits(later, "async_steps, step awaited", awaited_steps);
  waits(later, "async_run_all, step awaited", awaited_all);
  waits(later, "async_run, step awaited", awaited_run);
  waits(later, "async_run_step_fn, step awaited", in_awaited_step_fn);
}

// ---- The promises of the table.

std::ptrdiff_t count(const story_type& story, std::string_view call) { return std::ranges::count(story, call); }
/// Returns the number of repetitions of `calls` in `story` without all other calls. Returns -1 if `story` has these calls in another order.
std::ptrdiff_t repeats(const story_type& story, const story_type& calls) {
  std::size_t next = 0;
  for (const auto& call : story) {
    if (std::ranges::find(calls, call) == calls.end()) { continue; }
    if (call != calls[next++ % calls.size()]) { return -1; }
  }
  return next % calls.size() == 0 ? static_cast<std::ptrdiff_t>(next / calls.size()) : -1;
}
/// Returns the number of places at which `calls` directly follow each other.
std::ptrdiff_t places(story_type story, const story_type& calls) {
  std::ptrdiff_t found = 0;
  for (auto rest = std::ranges::search(story, calls); !rest.empty();
       rest = std::ranges::search(rest.end(), story.end(), calls.begin(), calls.end())) {
    ++found;
  }
  return found;
}
/// Returns the number of calls of `inner`, or -1 if the object of `outer` does not exist during one of them.
std::ptrdiff_t within(const story_type& story, std::string_view outer, std::string_view inner) {
  bool is_held = false;
  std::ptrdiff_t found = 0;
  for (const auto& call : story) {
    if (call == outer) { is_held = true; }
    if (call == "end of " + std::string(outer)) { is_held = false; }
    if (call == inner && !is_held) { return -1; }
    if (call == inner) { ++found; }
  }
  return found;
}

/// The promise of the table about one member. `check` checks it in a life.
struct promise {
  std::string_view member;
  void (*check)(const life& seen);
};
constexpr promise promises[] = {
    {"enter",
     [](const life& seen) {
       CHECK(repeats(seen.stepped, {"enter", "run", "end of enter"}) == 4);
       CHECK(within(seen.stepped, "enter", "read 7") == 3);
       CHECK(repeats(seen.asked, {"enter", "run", "end of enter"}) == (seen.is_known ? 2 : 0));
       CHECK(within(seen.asked, "enter", "read 9") == (seen.is_known ? 1 : 0));
     }},
    {"feed",
     [](const life& seen) {
       CHECK(repeats(seen.stepped, {"enter", "feed", "end of feed", "end of enter"}) == (seen.has_pull ? 4 : -1));
       CHECK(within(seen.stepped, "feed", "read 7") == (seen.has_pull ? 3 : -1));
       CHECK(within(seen.stepped, "feed", "run") == (seen.has_pull ? 4 : -1));
       CHECK(count(seen.asked, "feed") == (seen.is_known && seen.has_pull ? 1 : 0));  // the second run has no feeds
     }},
    {"reads_feeds",
     [](const life& seen) {
       CHECK(repeats(seen.stepped, {"enter", "fed rate", "run", "end of enter"}) == (seen.has_pull ? -1 : 4));
       CHECK(count(seen.asked, "fed rate") == (seen.is_known && !seen.has_pull ? 1 : 0));
     }},
    {"takes", [](const life& seen) { CHECK(count(seen.refused, "run") == (seen.is_known ? 1 : 0)); }},
    {"awaits", [](const life& seen) { CHECK(seen.is_awaited == seen.awaits); }},
    {"fetch_key", [](const life& seen) { CHECK(repeats(seen.stepped, {"enter", "fetch 7", "run"}) == 4); }},
    {"pull",
     [](const life& seen) {
       const bool pulls = seen.has_pull, saves = pulls && seen.of.is_chief;
       CHECK(places(seen.created, {"init_variables", "pull", "end of pull"}) == (saves ? 1 : 0));  // the copy of the initial state
       CHECK(places(seen.created, {"exclusive", "pull", "end of pull"}) == (saves ? 1 : 0));       // the first checkpoint
       CHECK(repeats(seen.stepped, {"pull", "end of pull"}) == (saves ? 3 : 0));
       CHECK(repeats(seen.copied, {"pull", "end of pull"}) == (pulls && seen.is_known ? 1 : 0));
     }},
    {"push",
     [](const life& seen) {
       const bool pushes = seen.has_pull && seen.of.is_chief;
       CHECK(count(seen.created, "push") == 0);
       CHECK(repeats(seen.stepped, {"close", "push", "end of prepare_as_chief"}) == (pushes ? 1 : -1));
       CHECK(seen.weight == (seen.is_known ? 5 : 3));  // each step counts once
     }},
    {"fence",
     [](const life& seen) {
       const bool has_fence = !seen.has_pull && !seen.of.is_shared;
       CHECK(places(seen.stepped, {"exclusive", "fence", "end of exclusive"}) == (has_fence && seen.of.is_chief ? 3 : 0));
       CHECK((count(seen.closed, "fence") > 0) == has_fence);
     }},
    {"subject", [](const life& seen) { CHECK(seen.gets_subject == seen.is_known); }},
    {"close",
     [](const life& seen) {
       CHECK(count(seen.created, "close") == 0);
       CHECK(repeats(seen.stepped, {"close", "init_local_variables"}) == 1);  // before the recovered session
       CHECK(count(seen.closed, "close") == 1);
       CHECK(seen.closed.back() == "close");
     }},
    {"is_shared",
     [](const life& seen) {
       CHECK((seen.runs_on == std::this_thread::get_id()) == (seen.awaits || !seen.is_async || !(seen.of.is_shared || seen.of.in_group)));
     }},
    {"exclusive",
     [](const life& seen) {
       CHECK(repeats(seen.stepped, {"exclusive", "end of exclusive"}) == (seen.of.is_chief ? 3 : 1));
       CHECK(repeats(seen.copied, {"exclusive", "end of exclusive"}) == (seen.is_known ? 1 : 0));
       for (const auto* part : {&seen.stepped, &seen.copied, &seen.closed}) { CHECK(within(*part, "exclusive", "pull") >= 0); }
       CHECK(within(seen.closed, "exclusive", "final op") == 1);
     }},
    {"read_global_step",
     [](const life& seen) {
       CHECK(seen.stepped.front() == "read_global_step");  // `global_step_waiter_hook` waits once, before the first run
       CHECK(count(seen.stepped, "read_global_step") == 1);
     }},
    {"prepare_as_chief",
     [](const life& seen) {
       for (const auto* part : {&seen.created, &seen.stepped}) {
         const story_type preparation{"prepare_as_chief", "init_local_variables", "end of prepare_as_chief"};
         CHECK(repeats(*part, preparation) == (seen.of.is_chief ? 1 : -1));
       }
     }},
    {"is_chief_ready", [](const life& seen) { CHECK(count(seen.stepped, "wait_for_chief") == 0); }},  // it is ready since the creation
    {"wait_for_chief", [](const life& seen) { CHECK(repeats(seen.created, {"wait_for_chief", "join"}) == (seen.of.is_chief ? 0 : 1)); }},
    {"join",
     [](const life& seen) {
       for (const auto* part : {&seen.created, &seen.stepped}) { CHECK(within(*part, "exclusive", "join") == (seen.of.is_chief ? 0 : 1)); }
     }},
    {"init_variables",
     [](const life& seen) {
       CHECK(count(seen.created, "init_variables") == (seen.of.is_chief ? 1 : 0));
       CHECK(count(seen.stepped, "init_variables") == 0);  // the recovery restores a checkpoint
     }},
    {"init_local_variables",
     [](const life& seen) {
       for (const auto* part : {&seen.created, &seen.stepped}) { CHECK(count(*part, "init_local_variables") == 1); }
     }},
    {"uninitialized_variables",
     [](const life& seen) {
       for (const auto* part : {&seen.created, &seen.stepped}) {
         CHECK(repeats(*part, {"uninitialized_variables", "init_local_variables", "uninitialized_variables"}) == 1);
       }
     }},
    {"uninitialized_local_variables",
     [](const life& seen) {
       for (const auto* part : {&seen.created, &seen.stepped}) {
         CHECK(repeats(*part, {"init_local_variables", "uninitialized_local_variables"}) == 1);
       }
     }},
};
// These fail if the table has a member without a promise. Write the promise of a new member above.
static_assert(for_each_member([]<class Member>() { return std::ranges::count(promises, Member::name, &promise::member) == 1; }));
consteval std::size_t members_of_table() {
  std::size_t count = 0;
  for_each_member([&count]<class Member>() { return ++count > 0; });
  return count;
}
static_assert(members_of_table() == std::size(promises));

}  // namespace

TEST_CASE("sessions of every kind call each optional member of a raw session as its table promises", "[session][async][raw_session]") {
  const log_capture log;
  const auto of = GENERATE(kind{}, kind{.is_chief = false}, kind{.in_group = true}, kind{.is_shared = true});
  std::optional<life> first;
  const auto check = [&](const char* way, const life& seen) {
    INFO(way << (of.is_chief ? "" : ", worker") << (of.in_group ? ", group" : "") << (of.is_shared ? ", shared" : ""));
    for (const auto& row : promises) {
      INFO(row.member);
      row.check(seen);
    }
    // all sessions have the same calls in the same order
    if (!first) { first = seen; }
    CHECK(seen.created == first->created);
    CHECK(seen.stepped == first->stepped);
    if (!seen.is_known) { return; }
    CHECK(seen.asked == first->asked);
    CHECK(seen.copied == first->copied);
    CHECK(seen.refused == first->refused);
    CHECK(seen.closed == first->closed);
  };
  for_each_life<pulled_raw>(of, check);
  first.reset();
  for_each_life<fenced_raw>(of, check);
}
