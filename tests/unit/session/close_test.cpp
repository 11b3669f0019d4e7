// SPDX-License-Identifier: Apache-2.0
//
// Tests of the ways to end a session: close, a with-block, an exception (contract CLOSE).
#include "support/catch.hpp"
#include "support/log_capture.hpp"
#include "support/recording_hook.hpp"
#include "support/recovery_rig.hpp"

#include <stepwell/protocol/detail/boundary_work.hpp>
#include <stepwell/session/training_session.hpp>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace sw = stepwell;
using namespace sw::test;
using story_type = std::vector<std::string>;

namespace {

/// Boundary work that records its calls. It throws in the call `fails_at`.
struct telling_work final : sw::boundary_work {
  story_type& story;
  std::string fails_at;

  telling_work(story_type& into, std::string fails) : story(into), fails_at(std::move(fails)) {}
  bool try_save(const sw::boundary_state&) override { return tell("save"), true; }
  void drain(const sw::deadline&) override { tell("drain"); }
  void flush(const sw::deadline&) override { tell("flush"); }

private:
  void tell(const std::string& what) {
    story.push_back(what);
    if (what == fails_at) { throw std::runtime_error(what + " fails"); }
  }
};

/// A hook that requests a save in `end` if it has work, and throws there if `fails` is set.
struct busy_hook {
  story_type& story;
  std::string name;
  std::shared_ptr<telling_work> work = nullptr;
  bool fails = false;

  void after_create_session(auto& session, auto&) {
    if (work) { session.add_work(work); }
  }
  void end(auto& session) {
    story.push_back("end " + name);
    if (work) { session.request_save(*work); }
    if (fails) { throw std::runtime_error("end of " + name + " fails"); }
  }
};

/// A hook that starts a thread, which runs until a stop is requested.
struct thread_hook {
  std::atomic<bool>& has_ended;

  void after_create_session(auto&, sw::coordinator& threads) {
    threads.start_thread("busy", [&ended = has_ended](std::stop_token stop) {
      std::promise<void> asked;
      const std::stop_callback tell(stop, [&] { asked.set_value(); });
      asked.get_future().wait();
      ended = true;
    });
  }
};

void report(auto& session, const std::exception_ptr& failure) { session.template hook<coordinator_hook>().threads->request_stop(failure); }
template<class Error>
std::exception_ptr failed_with(const std::string& why) {
  return std::make_exception_ptr(Error(why));
}

/// Calls `*call` after each run, and counts its ends.
struct calling_hook {
  std::function<void()>* call;
  int* ends;
  void after_run(auto& /*context*/, const auto& /*values*/) {
    if (*call) { (*call)(); }
  }
  void end(auto& /*session*/) { ++*ends; }
};

}  // namespace

// A with-block suppresses exactly these types. They are final, so no derived types exist. (contract CLOSE-4)
static_assert(std::is_final_v<sw::out_of_range_error> && std::is_final_v<sw::stop_iteration>);

TEST_CASE("CLOSE-1 close ends the hooks in order, saves, finishes I/O, joins threads, closes the raw session", "[session][close]") {
  sw::test::log_capture log;
  adding_model model;
  story_type story;
  const auto fails_at = GENERATE(std::string(""), std::string("save"), std::string("drain"), std::string("flush"));
  const auto work = std::make_shared<telling_work>(story, fails_at);
  std::atomic<bool> has_ended = false;
  sw::monitored_session session(at_once(), closing_creator{model, &story, [&] { CHECK(has_ended); }}, busy_hook{story, "a", work},
                                busy_hook{story, "b"}, thread_hook{has_ended});
  if (fails_at.empty()) {
    session.close();
  } else {  // the later stages run in spite of the failure
    CHECK_THROWS_WITH(session.close(), fails_at + " fails");
  }
  CHECK(story == story_type{"end a", "end b", "save", "drain", "flush", "raw closed"});
}

TEST_CASE("CLOSE-2 CLOSE-8 D-20 if an end throws, the other hooks are ended, all is closed, and the first failure is thrown",
          "[session][close]") {
  sw::test::log_capture log;
  adding_model model;
  story_type story;
  const auto work = std::make_shared<telling_work>(story, "flush");
  sw::monitored_session session(at_once(), closing_creator{model, &story}, busy_hook{story, "a", nullptr, true},
                                busy_hook{story, "b", nullptr, true}, busy_hook{story, "c", work}, coordinator_hook{});
  report(session, failed_with<std::runtime_error>("the thread's"));
  CHECK_THROWS_WITH(session.close(), "end of a fails");
  CHECK(story == story_type{"end a", "end b", "end c", "save", "drain", "flush", "raw closed"});
  for (const auto* later : {"end of b fails", "flush fails", "the thread's"}) {
    CHECK(log.contains(sw::log_level::error, std::string("after an earlier failure: ") + later));
  }
}

TEST_CASE("CLOSE-3 D-15 a second close does nothing, also after one that threw, and inside a with-block", "[session][close]") {
  sw::test::log_capture log;
  adding_model model;
  story_type story;
  sw::monitored_session session(at_once(), model, recording_hook{&story}, coordinator_hook{});
  report(session, failed_with<std::runtime_error>("the thread's"));
  CHECK_THROWS(session.close());
  CHECK_NOTHROW(session.close());
  CHECK(std::ranges::count(story, "end 0") == 1);

  sw::monitored_session inner(at_once(), model, recording_hook{&story});
  CHECK_NOTHROW(sw::with(inner, [](auto& self) { self.close(); }));
  CHECK(std::ranges::count(story, "end 0") == 2);
}

TEST_CASE("CLOSE-4 a with-block ends quietly by the end of the data and by stop_iteration: hooks are ended", "[session][with]") {
  adding_model model;
  story_type story;
  const bool is_data = GENERATE(true, false);
  sw::monitored_session session(at_once(), model, recording_hook{&story});
  CHECK_NOTHROW(sw::with(session, [&](auto& inner) {
    inner.run(std::int64_t{1});
    if (is_data) { throw sw::out_of_range_error("no more"); }
    throw sw::stop_iteration("enough");
  }));
  CHECK(story.back() == "end 1");
  CHECK(std::ranges::count(story, "error") == 0);
  CHECK(session.should_stop());
}

TEST_CASE("CLOSE-5 TL-7 a with-block left by any other exception ends no hook, and the exception is thrown", "[session][with]") {
  sw::test::log_capture log;
  adding_model model;
  story_type story;
  sw::monitored_session session(at_once(), closing_creator{model, &story}, recording_hook{&story});
  CHECK_THROWS_WITH(sw::with(session,
                             [](auto& inner) {
                               inner.run(std::int64_t{1});
                               throw std::runtime_error("the body's");
                             }),
                    "the body's");
  CHECK(story == story_type{"begin", "create 0", "before 0", "after 1", "error", "raw closed"});
}

TEST_CASE("CLOSE-5 a recoverable failure of the body is none of the session's", "[session][with]") {
  adding_model model;
  story_type story;
  sw::monitored_session session(at_once(), model, recording_hook{&story});
  CHECK_THROWS_AS(sw::with(session, [](auto&) { throw sw::aborted_error("the body's"); }), sw::aborted_error);
  CHECK(session.metrics().recoveries == 0);
  CHECK(std::ranges::count(story, "end 0") == 0);
}

TEST_CASE("CLOSE-6 CLOSE-7 with() throws the failure of a thread, also an end of data, after it has ended the hooks", "[session][with]") {
  sw::test::log_capture log;
  adding_model model;
  story_type story;
  const bool is_data = GENERATE(true, false);
  sw::monitored_session session(at_once(), model, recording_hook{&story}, coordinator_hook{});
  const auto body = [&](auto& inner) {
    inner.run(std::int64_t{1});
    report(inner, is_data ? failed_with<sw::out_of_range_error>("the thread's") : failed_with<std::runtime_error>("the thread's"));
  };
  CHECK_THROWS_WITH(sw::with(session, body), ContainsSubstring("the thread's"));
  CHECK(std::ranges::count(story, "end 1") == 1);
  CHECK(session.should_stop());
}

TEST_CASE("CLOSE-8 PORT-4 D-23 the body's exception is thrown, and a later exception of the close is logged", "[session][with]") {
  sw::test::log_capture log;
  adding_model model;
  story_type story;
  const auto work = std::make_shared<telling_work>(story, "drain");
  sw::monitored_session session(at_once(), model, busy_hook{story, "a", work}, coordinator_hook{});
  report(session, failed_with<std::runtime_error>("the thread's"));
  CHECK_THROWS_WITH(sw::with(session, [](auto&) { throw std::runtime_error("the body's"); }), "the body's");
  CHECK(log.contains(sw::log_level::error, "while shutting down after an error: drain fails"));
  CHECK(log.contains(sw::log_level::error, "while shutting down after an error: the thread's"));
  CHECK(std::ranges::count(story, "end a") == 0);
}

TEST_CASE("CLOSE-8 a quiet end of the body does not hide an exception of the close", "[session][with]") {
  sw::test::log_capture log;
  adding_model model;
  story_type story;
  sw::monitored_session session(at_once(), model, busy_hook{story, "a", nullptr, true});
  CHECK_THROWS_WITH(sw::with(session, [](auto&) { throw sw::out_of_range_error("no more"); }), "end of a fails");
}

TEST_CASE("CLOSE-9 a plain close after a failed run ends the hooks", "[session][close]") {
  adding_model model;
  story_type story;
  model.before = failing<std::runtime_error>(1);
  sw::monitored_session session(at_once(), model, recording_hook{&story});
  CHECK_THROWS(session.run(std::int64_t{1}));
  session.close();
  CHECK(story.back() == "end 0");
}

TEST_CASE("CLOSE-10 D-17 a session that is dropped is closed, and an exception of the close is logged", "[session][close]") {
  sw::test::log_capture log;
  adding_model model;
  story_type story;
  { sw::monitored_session session(at_once(), model, busy_hook{story, "a", nullptr, true}); }
  CHECK(story == story_type{"end a"});
  CHECK(log.contains(sw::log_level::error, "a session was destroyed without close(), and closing it failed: end of a fails"));
}

TEST_CASE("CLOSE-11 after each kind of end no run is possible", "[session][close]") {
  sw::test::log_capture log;
  adding_model model;
  sw::monitored_session session(at_once(), model);
  const bool is_closed = GENERATE(true, false);
  if (is_closed) {
    session.close();
  } else {
    session.abandon(failed_with<std::runtime_error>("the body's"));
  }
  CHECK(session.should_stop());
  CHECK_THROWS_AS(session.run(std::int64_t{1}), sw::failed_precondition_error);
  CHECK_THROWS_WITH(session.run(std::int64_t{1}), ContainsSubstring("closed"));
  int steps = 0;
  for ([[maybe_unused]] const auto& step : session.steps(std::vector<std::int64_t>{1, 2})) { ++steps; }
  CHECK(steps == 0);
  CHECK(model.sum == 0);
}

TEST_CASE("CLOSE-1 REC-3 a close logs the transient failure of a thread, and throws that of an end", "[session][close]") {
  sw::test::log_capture log;
  adding_model model;
  sw::monitored_session session(at_once(), model, coordinator_hook{});
  report(session, failed_with<sw::unavailable_error>("the server is gone"));
  CHECK_NOTHROW(session.close());
  CHECK(log.contains(sw::log_level::info, "the server is gone"));
  CHECK(session.stop_reason().cause == sw::stop_cause::closed);

  auto never = at_once();
  never.retry.max_attempts = 0;
  sw::monitored_session single(never, model, coordinator_hook{});
  report(single, failed_with<sw::unavailable_error>("the server is gone"));
  CHECK_THROWS_AS(single.close(), sw::unavailable_error);
}

TEST_CASE("close and checkpoint_now in a hook are errors that say what a hook calls", "[session][close]") {
  const log_capture log;
  adding_model model;
  std::function<void()> call;
  int ends = 0;
  sw::monitored_session session(model, calling_hook{&call, &ends});
  SECTION("close") {
    call = [&] { session.close(); };
    CHECK_THROWS_WITH(session.run(std::int64_t{1}), ContainsSubstring("close was called while the session is at work"));
  }
  SECTION("checkpoint_now") {
    call = [&] { session.checkpoint_now(); };
    CHECK_THROWS_WITH(session.run(std::int64_t{1}), ContainsSubstring("checkpoint_now was called while the session is at work"));
  }
  call = nullptr;
  session.close();
  CHECK(ends == 1);
}
