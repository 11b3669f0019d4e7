// SPDX-License-Identifier: Apache-2.0
//
// Tests that an asynchronous session implements the options of monitored_training_session.
#include "support/async_rig.hpp"
#include "support/catch.hpp"
#include "support/gate.hpp"
#include "support/log_capture.hpp"
#include "support/signalling_hook.hpp"
#include "unit/hooks/event_reading.hpp"

#include <stepwell/training/async_training_session.hpp>

#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <string>
#include <thread>
#include <vector>

namespace sw = stepwell;
using namespace sw::test;

namespace {

asio::awaitable<std::int64_t> last_step_of(auto& session, auto& source) {
  std::int64_t last = 0;
  co_await session.async_start();
  for (;;) {
    const auto step = co_await session.async_next(source);
    if (!step) { break; }
    last = step->global_step;
  }
  co_await session.async_close();
  co_return last;
}

/// Starts the session if it is not started, runs `steps` steps, and closes the session if `closes`.
asio::awaitable<void> part_of_life(auto& session, auto& source, int steps, bool closes) {
  if (!session.is_started()) { co_await session.async_start(); }
  for (int i = 0; i < steps; ++i) { co_await session.async_next(source); }
  if (closes) { co_await session.async_close(); }
}

/// Makes a session inside a coroutine frame of the event loop and runs it until `last_step`.
asio::awaitable<void> made_and_run(async_rig& rig, std::int64_t last_step) {
  auto options = rig.options();
  counting_source source;
  options.summaries.save_steps = 1;
  auto session = sw::monitored_training_session(sw::defer_start, rig.model, options, sw::stop_at_step_hook{{.last_step = last_step}});
  static_cast<void>(co_await last_step_of(session, source));
}

}  // namespace

TEST_CASE("an awaited training session saves by its cadence, stops by a signal, and resumes at its step", "[training][async][signals]") {
  const log_capture log;
  async_rig rig;
  {
    auto options = rig.options();
    options.stop_on = {SIGURG};
    counting_source source;
    auto session = sw::monitored_training_session(sw::defer_start, rig.model, options, signalling_hook{3});
    CHECK_FALSE(session.is_started());
    CHECK(rig.await(last_step_of(session, source)) == 3);
    CHECK(session.stop_reason().cause == sw::stop_cause::signal);
    CHECK(session.stop_reason().text == "the process was sent SIGURG");
    CHECK(rig.steps() == "0 2 3");
  }
  rig.model = adding_model();
  counting_source source;
  auto session = sw::monitored_training_session(sw::defer_start, rig.model, rig.options(), sw::stop_at_step_hook{{.last_step = 5}});
  CHECK(rig.await(last_step_of(session, source)) == 5);
  CHECK(same(rig.model, model_after(5)));
  CHECK(rig.steps() == "0 2 3 5");  // every second step, counted from the last save
}

TEST_CASE("an awaited training session calls a file system only on other threads, and not before async_start", "[training][async]") {
  async_rig rig;
  std::atomic<int> on_this_thread = 0;
  rig.files->before_each(
      [&, here = std::this_thread::get_id()](const event&) { on_this_thread += std::this_thread::get_id() == here ? 1 : 0; });
  auto options = rig.options();
  options.summaries.save_steps = 1;
  counting_source source;
  auto session = sw::monitored_training_session(sw::defer_start, rig.model, options, sw::stop_at_step_hook{{.last_step = 3}});
  CHECK(rig.files->operations() == 0);
  auto other = sw::monitored_training_session(sw::defer_start, rig.model, options);  // does not hold the directory yet
  CHECK(rig.await(last_step_of(session, source)) == 3);
  CHECK(rig.files->operations() > 0);
  CHECK(on_this_thread == 0);
}

TEST_CASE("the checkpoints of an awaited session are copied while many other sessions wait for a disk that does not respond",
          "[training][async]") {
  enum class waits { at_start, for_room, at_close };
  const auto where = GENERATE(waits::at_start, waits::for_room, waits::at_close);
  constexpr std::size_t others = 20;  // more than the threads for offloaded calls
  const log_capture log;
  gate disk;
  asio::io_context loop;
  std::deque<async_rig> rigs(others + 1);
  const auto session_on = [&](async_rig& rig) {
    auto options = rig.options();
    if (where == waits::for_room && &rig != &rigs[0]) { options.saves.saver.max_staged_bytes = 0; }
    rig.files->before_each([&](const event& one) {
      if (one.kind == operation::sync || (where == waits::at_start && &rig != &rigs[0])) { disk.pass(); }
    });
    return sw::monitored_training_session(sw::defer_start, rig.model, options);
  };
  std::deque<decltype(session_on(rigs[0]))> sessions;
  std::deque<counting_source> sources(others + 1);
  std::vector<bool> done(others + 1);
  const auto begin = [&](std::size_t i, int steps, bool closes) {
    asio::co_spawn(loop, part_of_life(sessions[i], sources[i], steps, closes), [&, i](const std::exception_ptr& failure) {
      CHECK_FALSE(failure);
      done[i] = true;
    });
  };
  const auto finish = [&] {
    loop.restart();
    loop.run();
  };
  for (auto& rig : rigs) { sessions.push_back(session_on(rig)); }
  for (std::size_t i = 0; i <= others && (i == 0 || where != waits::at_start); ++i) { begin(i, 0, false); }
  finish();
  for (const auto& rig : rigs) { rig.settle(); }

  disk.close();
  done.assign(done.size(), false);
  for (std::size_t i = 1; i <= others; ++i) { begin(i, where == waits::at_start ? 0 : 4, where == waits::at_close); }
  loop.restart();
  while (loop.poll() != 0) {}
  begin(0, 5, false);                                                     // the save of step 4 is handed over when step 5 begins
  while (!done[0] && loop.run_one_for(std::chrono::seconds(10)) != 0) {}  // the time ends the test only if it fails
  CHECK(done[0]);
  CHECK(sessions[0].metrics().under_way.waiting_bytes > 0);  // the save of step 4; that of step 2 waits for the disk
  CHECK(std::ranges::count(done, true) == 1);

  disk.open();
  finish();
  for (std::size_t i = 0; i <= others; ++i) { begin(i, 0, true); }
  finish();
  CHECK(rigs[0].steps() == "0 2 4 5");
}

struct in_the_child {};

TEST_CASE("a child made by fork cannot close an awaited session, and leaves it to its parent", "[training][async][process]") {
  async_rig rig;
  pid_t child = 0;
  int code = 0;
  try {
    auto session = sw::monitored_training_session(sw::defer_start, rig.model, rig.options());
    rig.await(session.async_start());
    rig.await(session.async_run(std::int64_t{1}));
    child = ::fork();
    if (child == 0) {
      ::alarm(60);
      try {
        rig.await(session.async_close());
      } catch (const sw::failed_precondition_error&) { code = 7; }
      throw in_the_child();
    }
    rig.await(session.async_run(std::int64_t{2}));
    rig.await(session.async_close());
  } catch (in_the_child) { ::_exit(code); }  // its session was destroyed
  REQUIRE(::waitpid(child, &code, 0) == child);
  CHECK(WIFEXITED(code));
  CHECK(WEXITSTATUS(code) == 7);
  CHECK(rig.steps() == "0 2");
}

TEST_CASE("an awaited training session is refused its directory by async_start", "[training][async]") {
  async_rig rig;
  auto holder = rig.start();
  auto session = sw::monitored_training_session(sw::defer_start, rig.model, rig.options());
  CHECK_THROWS_AS(rig.await(session.async_start()), sw::failed_precondition_error);
  auto bad = rig.options();
  bad.saves.saver.basename = "";
  CHECK_THROWS_AS(sw::monitored_training_session(sw::defer_start, rig.model, bad), sw::invalid_argument_error);
}

TEST_CASE("D-33 an awaited training session that is closed writes that its run succeeded; one that is abandoned writes nothing",
          "[training][async][hparams]") {
  const log_capture log;
  async_rig rig;
  const auto endings = [&] { return tagged_in(rig.directory.path(), "_hparams_/session_end_info").size(); };
  auto options = rig.options();
  options.summaries.hparams = sw::format::hparam_map{{"batch_size", 32}};
  options.summaries.save_steps = 1;
  counting_source source;
  {
    auto session = sw::monitored_training_session(sw::defer_start, rig.model, options, sw::stop_at_step_hook{{.last_step = 2}});
    rig.await(session.async_start());
    rig.await(session.async_next(source));
  }
  rig.when_free([&] {
    CHECK(endings() == 0);
    auto session = sw::monitored_training_session(sw::defer_start, rig.model, options, sw::stop_at_step_hook{{.last_step = 4}});
    static_cast<void>(rig.await(last_step_of(session, source)));
  });
  CHECK(endings() == 1);
}

TEST_CASE("an awaited training session writes the values of its summaries", "[training][async][summary]") {
  const log_capture log;
  async_rig rig;
  auto options = rig.options();
  options.summaries.save_steps = 2;
  counting_source source;
  auto session = sw::monitored_training_session(
      sw::defer_start, rig.model, options,
      sw::summaries(sw::summary::scalar("loss", &adding_model::result::loss), sw::summary::scalar("sum", &adding_model::sum)),
      sw::stop_at_step_hook{{.last_step = 4}});
  CHECK(rig.await(last_step_of(session, source)) == 4);
  const auto losses = scalars_in(options.checkpoint_dir, "loss");
  CHECK(losses.size() >= 2);
  CHECK(scalars_in(options.checkpoint_dir, "sum").at(losses.rbegin()->first) == losses.rbegin()->second);
}

TEST_CASE("an awaited training session may be left after any number of handlers, and the next one continues",
          "[training][async][abandon][cancel]") {
  const bool is_cancelled = GENERATE(false, true);  // the alternative is abandonment with the event loop
  log_capture log;
  int handlers = 0;
  for (bool has_ended = false; !has_ended; ++handlers) {
    async_rig rig;
    bool is_done = false;
    {
      asio::io_context loop;
      asio::cancellation_signal cancel;
      asio::co_spawn(loop, made_and_run(rig, 3), asio::bind_cancellation_slot(cancel.slot(), [&](const std::exception_ptr& failure) {
                       CHECK((!failure || (is_cancelled && was_aborted(failure))));
                       is_done = true;
                     }));
      run_handlers(loop, handlers, is_done);
      has_ended = is_done;
      if (is_cancelled && !is_done) {
        cancel.emit(asio::cancellation_type::terminal);
        const bool never_began = run_cancelled(loop, handlers);
        CHECK((is_done || never_began));
      }
    }
    rig.model = adding_model();
    rig.when_free([&] { rig.await(made_and_run(rig, 5)); });
    CHECK(same(rig.model, model_after(5)));
  }
  CHECK(handlers > 5);
}
