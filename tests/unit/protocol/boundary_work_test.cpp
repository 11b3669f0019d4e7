// SPDX-License-Identifier: Apache-2.0
//
// Tests of the session's boundary work: all of it is done even if a part fails, and it takes no longer than allowed.
#include "support/catch.hpp"
#include "support/log_capture.hpp"
#include "support/toy_model.hpp"

#include <stepwell/model/model_session.hpp>
#include <stepwell/protocol/detail/boundary_work.hpp>

#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>

namespace sw = stepwell;
using namespace std::chrono_literals;
using sw::test::counting_model;

namespace {

/// Boundary work that records its calls and throws in the call `fails_at`.
struct noting_work final : sw::boundary_work {
  std::string& story;
  std::string name;
  std::string fails_at;
  int busy = 0;
  sw::manual_clock* time = nullptr;

  noting_work(std::string& into, std::string called, std::string fails)
      : story(into), name(std::move(called)), fails_at(std::move(fails)) {}

  void note(const std::string& what) {
    story += (story.empty() ? "" : " ") + name + what;
    if (what == fails_at) { throw std::runtime_error(name + what + " fails"); }
    if ("odd " + what == fails_at) { throw 42; }
  }
  bool try_save(const sw::boundary_state& state) override {
    if (busy-- > 0) { return false; }
    note("save" + std::to_string(state.global_step));
    return true;
  }
  void wait_ready(const sw::deadline& until, const std::stop_token&) override {
    note(time != nullptr ? "wait" + std::to_string((until.on(*time) - time->now()) / 1s) : "wait");
  }
  void process_events() override { note("attend"); }
  void drain(const sw::deadline&) override { note("drain"); }
  void flush(const sw::deadline&) override { note("flush"); }
};

/// A hook that requests a save of its work after every run and at the end.
struct saving_hook {
  std::shared_ptr<noting_work> work;
  bool calls_attention = false;

  void after_create_session(auto& session, auto&) { session.add_work(work); }
  void after_run(auto& context, const auto&) {
    context.request_save(*work);
    if (calls_attention) { context.signals()->notify(); }
  }
  void end(auto& session) { session.request_save(*work); }
};

std::string failure_of(auto&& action) {
  try {
    action();
  } catch (const std::exception& failure) { return failure.what(); }
  return "none";
}

}  // namespace

TEST_CASE("a save that fails does not prevent another's", "[session][boundary]") {
  sw::test::log_capture log;
  std::string story;
  counting_model model;
  const bool both = GENERATE(false, true);
  sw::monitored_session session(model, saving_hook{std::make_shared<noting_work>(story, "a-", "save1")},
                                saving_hook{std::make_shared<noting_work>(story, "b-", both ? "save1" : "")});
  CHECK(failure_of([&] { session.run(); }) == "a-save1 fails");
  CHECK(story == "a-save1 b-save1");
  CHECK(log.contains(sw::log_level::error, "b-save1 fails") == both);
}

TEST_CASE("a failure of the background does not prevent the save that is due", "[session][boundary]") {
  std::string story;
  counting_model model;
  sw::monitored_session session(model, saving_hook{std::make_shared<noting_work>(story, "", "attend"), true});
  CHECK(failure_of([&] { session.run(); }) == "attend fails");
  CHECK(story == "attend save1");
}

TEST_CASE("closing saves, drains, attends and flushes all, and throws the first failure", "[session][boundary]") {
  sw::test::log_capture log;
  std::string story;
  counting_model model;
  const auto at = GENERATE(std::string("save0"), std::string("drain"), std::string("attend"), std::string("flush"));
  sw::monitored_session session(model, saving_hook{std::make_shared<noting_work>(story, "a-", at)},
                                saving_hook{std::make_shared<noting_work>(story, "b-", at)});
  CHECK(failure_of([&] { session.close(); }) == "a-" + at + " fails");
  CHECK(story == "a-save0 b-save0 a-drain b-drain a-attend b-attend a-flush b-flush");
  CHECK(log.contains(sw::log_level::error, "b-" + at + " fails"));
}

TEST_CASE("an exception of any type that is thrown during the end after an error is logged", "[session][boundary]") {
  sw::test::log_capture log;
  std::string story;
  counting_model model;
  const auto at = GENERATE(std::string("drain"), std::string("odd drain"));
  sw::monitored_session session(model, saving_hook{std::make_shared<noting_work>(story, "", at)});
  session.abandon(std::make_exception_ptr(std::runtime_error("the body failed")));
  CHECK(story == "drain attend flush");
  CHECK(log.contains(sw::log_level::error, "while shutting down after an error"));
}

TEST_CASE("only while closing there is a deadline to wait for room", "[session][boundary]") {
  std::string story;
  counting_model model;
  const auto clock = std::make_shared<sw::manual_clock>();
  const auto work = std::make_shared<noting_work>(story, "", "");
  sw::monitored_session session(sw::training_options{.stop_grace_period_secs = 30s, .clock = clock}, model, saving_hook{work});
  work->time = clock.get();
  work->busy = 2;
  session.close();
  CHECK(story.starts_with("wait30 wait30 save0"));
}

TEST_CASE("a deadline is as far from now on every clock, and never is never", "[session][boundary]") {
  sw::manual_clock here;
  sw::manual_clock there;
  there.advance(1h);
  here.advance(5s);
  const sw::deadline until(here, here.now() + 10s);
  CHECK(until.on(here) == here.now() + 10s);
  CHECK(until.on(there) == there.now() + 10s);
  here.advance(11s);
  CHECK(until.on(there) == there.now() - 1s);
  CHECK(sw::deadline::never(here).on(there) == sw::clock::time_point::max());
}

TEST_CASE("the checkpoint to restore is found before hooks begin; if this fails, no hook begins", "[session][boundary]") {
  struct beginning_hook {
    std::string* story;
    void begin() { *story += "begin"; }
  };
  std::string story;
  counting_model model;
  const auto find = [&](bool fails) {
    return [&story, fails]() -> std::optional<sw::checkpoint_reader> {
      story += "find ";
      if (fails) { throw sw::data_loss_error("none is whole"); }
      return std::nullopt;
    };
  };
  CHECK_THROWS_AS((sw::monitored_session(sw::session_setup{.find_checkpoint = find(true)}, model, beginning_hook{&story})),
                  sw::data_loss_error);
  CHECK(story == "find ");
  const sw::monitored_session session(sw::session_setup{.find_checkpoint = find(false)}, model, beginning_hook{&story});
  CHECK(story == "find find begin");
}
