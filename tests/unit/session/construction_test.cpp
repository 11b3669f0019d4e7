// SPDX-License-Identifier: Apache-2.0
//
// Tests of the construction of a monitored session: the order of the calls, and the state after a failure (contract
// MON).
#include "support/catch.hpp"
#include "support/creation_rig.hpp"
#include "support/log_capture.hpp"
#include "support/temporary_directory.hpp"
#include "support/toy_model.hpp"
#include "support/two_part_model.hpp"

#include <stepwell/hooks/checkpoint_saver_hook.hpp>
#include <stepwell/model/model_session.hpp>
#include <stepwell/session/training_session.hpp>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace sw = stepwell;
using namespace std::chrono_literals;
using sw::test::counting_model;
using sw::test::message_of;
using sw::test::two_part_model;
using counting_session = sw::monitored_session<sw::model_session<counting_model>>;

namespace {

/// A hook that records every call in the same text as the model.
struct telling_hook {
  std::string* story;
  std::string name;

  void begin() { tell("begin"); }
  void after_create_session(auto&, auto&) { tell("created"); }
  void before_run(auto&) { tell("before"); }
  void after_run(auto&, const auto&) { tell("after"); }
  void end(auto&) { tell("end"); }

private:
  void tell(const std::string& what) { *story += (story->empty() ? "" : " ") + name + "." + what; }
};

/// A hook that throws at the point `at`.
struct failing_hook {
  std::string at;
  void begin() const { fail("begin"); }
  void after_create_session(auto&, auto&) const { fail("created"); }
  void fail(const std::string& where) const {
    if (where == at) { throw std::runtime_error("fails at " + where); }
  }
};

struct aborts_once {
  bool has_aborted = false;
  void before_run(auto&) {
    if (!std::exchange(has_aborted, true)) { throw sw::aborted_error("once"); }
  }
};

/// A hook that starts a thread, which waits for the stop request and then records its end. The first thread throws
/// `failure` if it is set.
struct waiting_thread_hook {
  std::shared_ptr<std::string> story = std::make_shared<std::string>();
  std::exception_ptr failure = nullptr;
  int started = 0;

  void after_create_session(auto&, sw::coordinator& threads) {
    threads.start_thread("waits", [told = story, number = ++started, failed = failure](std::stop_token stop) {
      std::mutex mutex;
      std::condition_variable_any never;
      std::unique_lock lock(mutex);
      if (failed && number == 1) { std::rethrow_exception(failed); }
      never.wait(lock, stop, [] { return false; });
      *told += "thread" + std::to_string(number) + " ended ";
    });
  }
};

sw::training_options quick(const std::shared_ptr<sw::clock>& time) { return {.retry = {.initial_backoff = 0}, .clock = time}; }

}  // namespace

TEST_CASE("MON-1 a session is made of a creator, or a model which then is its own chief's, with two minutes' grace, and recovers",
          "[session][construction]") {
  CHECK(sw::training_options{}.stop_grace_period_secs == sw::seconds_value(120));
  CHECK(sw::training_options{}.retry.max_attempts > 0);
  two_part_model model;
  sw::monitored_session by_creator(sw::chief_session_creator{model});
  CHECK(model.story == "init local_init");
  CHECK(by_creator.run() == 11);
  counting_model counting;
  sw::monitored_session by_model(counting);
  STATIC_REQUIRE(std::is_same_v<decltype(by_model), counting_session>);
  CHECK(by_model.run() == 1);
}

TEST_CASE("MON-2 hooks begin, the session is made ready, then after_create_session is called, in the order of the hooks",
          "[session][construction]") {
  two_part_model model;
  sw::monitored_session session(sw::chief_session_creator{model}, telling_hook{&model.story, "a"}, telling_hook{&model.story, "b"});
  CHECK(model.story == "a.begin b.begin init local_init a.created b.created");
}

TEST_CASE("MON-2 all but begin is repeated by a recovery", "[session][construction]") {
  sw::test::log_capture log;
  two_part_model model;
  sw::monitored_session session(quick(std::make_shared<sw::manual_clock>()), sw::chief_session_creator{model},
                                telling_hook{&model.story, "a"}, aborts_once{});
  model.story.clear();
  session.run();
  CHECK(model.story == "a.before init local_init a.created a.before a.after");
}

TEST_CASE("MON-2 no exception is taken for a clean stop by the threads of a session", "[session][construction]") {
  sw::test::log_capture log;
  counting_model model;
  sw::monitored_session session(
      model, waiting_thread_hook{.failure = std::make_exception_ptr(sw::out_of_range_error("a thread ran out of data"))});
  CHECK_THROWS_AS(session.close(), sw::out_of_range_error);
}

TEST_CASE("MON-3 a begin that fails ends the construction, and no hook is called afterwards", "[session][construction]") {
  two_part_model model;
  const auto message = message_of<std::runtime_error>([&] {
    const sw::monitored_session session(sw::chief_session_creator{model}, telling_hook{&model.story, "a"}, failing_hook{"begin"},
                                        telling_hook{&model.story, "b"});
  });
  CHECK(message == "fails at begin");
  CHECK(model.story == "a.begin");
}

TEST_CASE("MON-3 a creation that fails leaves no thread running", "[session][construction]") {
  counting_model model;
  const waiting_thread_hook waits;
  const auto message = message_of<std::runtime_error>([&] { const sw::monitored_session session(model, waits, failing_hook{"created"}); });
  CHECK(message == "fails at created");
  CHECK(*waits.story == "thread1 ended ");
}

TEST_CASE("MON-4 every hook has every point called, however often hooks are gone through", "[session][construction]") {
  counting_model model;
  std::string story;
  struct only_movable : telling_hook {
    explicit only_movable(std::string* to) : telling_hook{to, "m"} {}
    only_movable(only_movable&&) = default;
  };
  {
    sw::monitored_session session(model, only_movable(&story));
    session.run();
    session.close();
  }
  CHECK(story == "m.begin m.created m.before m.after m.end");
}

TEST_CASE("MON-6 a session gives its model, and after close it runs no more", "[session][construction]") {
  counting_model model;
  sw::monitored_session session(model);
  CHECK(&session.subject() == &model);
  session.close();
  CHECK_THROWS_AS(session.run(), sw::failed_precondition_error);
}

TEST_CASE("MON-7 a monitored session is not a raw session", "[session][construction]") {
  STATIC_REQUIRE_FALSE(sw::raw_session<counting_session>);
  STATIC_REQUIRE_FALSE(std::is_constructible_v<sw::model_session<counting_model>, counting_session&>);
}

TEST_CASE("a session without default hooks rejects their options by name", "[session][construction]") {
  counting_model model;
  const auto refused = [&](const std::string& name, const sw::training_options& options) {
    INFO(name);
    const auto text = message_of<sw::invalid_argument_error>([&] { const sw::monitored_session session(options, model); });
    CHECK(text.find(name + " is given, but") != std::string::npos);
  };
  refused("saves.save_steps", {.saves = {.save_steps = 10}});
  refused("saves.save_secs", {.saves = {.save_secs = 10}});
  refused("saves.save_overhead", {.saves = {.save_overhead = 0.1}});
  refused("saves.saver.max_to_keep", {.saves = {.saver = {.max_to_keep = 3}}});
  refused("saves.save_interval", {.saves = {.save_interval = {.min_interval = 30}}});
  refused("saves.saver.shards", {.checkpoint_dir = "run", .saves = {.saver = {.shards = 3}}});
  refused("saves.saver.basename", {.saves = {.saver = {.basename = "other.ckpt"}}});
  refused("step_counter.log_every_secs", {.step_counter = {.log_every_secs = 0}});
  refused("summaries.save_steps", {.summaries = {.save_steps = 10}});
  refused("summaries.at_end", {.summaries = {.at_end = true}});
  refused("step_counter.every_n_steps", {.step_counter = {.every_n_steps = 10}});
  refused("summaries.hparams", {.summaries = {.hparams = sw::format::hparam_map{{"rate", 0.1}}}});
  refused("master", {.master = "local:rejected"});
  refused("is_chief = false", {.is_chief = false});
}

TEST_CASE("a session without a function that finds checkpoints restores the newest one of checkpoint_dir", "[session][construction]") {
  const sw::test::log_capture log;
  const sw::test::temporary_directory directory;
  counting_model model;
  sw::monitored_session saving(model, sw::checkpoint_saver_hook{{.checkpoint_dir = directory.path(), .save_steps = 100}});
  for (int i = 0; i < 7; ++i) { saving.run(); }
  saving.close();
  counting_model resumed;
  const sw::monitored_session session({.checkpoint_dir = directory.path()}, resumed);
  CHECK(session.global_step() == 7);
  CHECK(session.restored_from().has_value());
  CHECK_NOTHROW(sw::monitored_session({.checkpoint_dir = directory.path(), .saves = {.saver = {.basename = "other.ckpt"}}}, resumed));
  const sw::monitored_session other(sw::session_setup{.options = {.checkpoint_dir = directory.path()},
                                                      .find_checkpoint = [] { return std::optional<sw::checkpoint_reader>(); }},
                                    resumed);
  CHECK_FALSE(other.restored_from().has_value());
}

TEST_CASE("MON-8 threads that a hook starts with the session's coordinator are joined at close", "[session][construction]") {
  counting_model model;
  sw::monitored_session session(model, waiting_thread_hook{});
  session.run();
  CHECK(session.hook<waiting_thread_hook>().story->empty());
  session.close();
  CHECK(*session.hook<waiting_thread_hook>().story == "thread1 ended ");
}

TEST_CASE("MON-8 threads of a hook are joined at a recovery, and the hook may start them again", "[session][construction]") {
  sw::test::log_capture log;
  counting_model model;
  sw::monitored_session session(quick(std::make_shared<sw::manual_clock>()), model, waiting_thread_hook{}, aborts_once{});
  session.run();
  CHECK(*session.hook<waiting_thread_hook>().story == "thread1 ended ");
  CHECK(session.hook<waiting_thread_hook>().started == 2);
  session.close();
  CHECK(*session.hook<waiting_thread_hook>().story == "thread1 ended thread2 ended ");
}

TEST_CASE("MON-8 the session throws the failures that threads of a hook report", "[session][construction]") {
  sw::test::log_capture log;
  counting_model model;
  sw::monitored_session session(model, waiting_thread_hook{.failure = std::make_exception_ptr(std::runtime_error("the disk is full"))});
  CHECK(message_of<std::runtime_error>([&] { session.close(); }) == "the disk is full");
}
