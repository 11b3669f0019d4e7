// SPDX-License-Identifier: Apache-2.0
//
// Tests of a preemption whose grace of 1 s is used up before the state is saved, on a manual clock.
#include "support/catch.hpp"
#include "support/gate.hpp"
#include "support/log_capture.hpp"
#include "support/once_waiting.hpp"
#include "support/session_rig.hpp"
#include "support/signalling_hook.hpp"

#include <stepwell/base/error.hpp>
#include <stepwell/hooks/best_checkpoint_hook.hpp>
#include <stepwell/hooks/early_stopping_hook.hpp>
#include <stepwell/hooks/evaluate_every.hpp>
#include <stepwell/hooks/summary_saver_hook.hpp>
#include <stepwell/summary/writer.hpp>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <csignal>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace sw = stepwell;
using namespace std::chrono_literals;
using sw::test::adding_model;
using sw::test::operation;
using sw::test::session_rig;
using sw::test::signalling_hook;

namespace {

/// Returns options with a grace of 1 s after SIGURG, in which only the first and the last state are saved.
sw::test::adding_options preemptible(const session_rig& rig, std::shared_ptr<sw::clock> time = nullptr) {
  auto made = rig.options();
  if (time) { made.clock = std::move(time); }
  made.saves.save_steps = 100;
  made.stop_on = {SIGURG};
  made.preemption_grace = 1s;
  return made;
}

/// Returns the same options without checkpoints, so that the close of the session waits for nothing else.
sw::test::adding_options unsaved(const session_rig& rig) {
  auto made = preemptible(rig);
  made.checkpoint_dir.clear();
  made.saves.save_steps = {};
  return made;
}

double own_value(double value) { return value; }

/// Blocks at `door`, then returns the sum of the model.
struct evaluation_at {
  sw::test::gate* door;
  double operator()(const adding_model& model) const {
    door->pass();
    return static_cast<double>(model.sum);
  }
};

/// A hook that takes 10 s after the signal, in the run of step `at` or in `end`.
struct slow_hook {
  static constexpr auto phase = sw::hook_phase::guard;
  std::shared_ptr<sw::manual_clock> clock;
  std::int64_t at = -1;
  std::shared_ptr<sw::session_signals> signals = nullptr;

  void after_create_session(auto& session, auto&) { signals = session.signals(); }
  void after_run(auto& context, const auto&) {
    if (context.global_step() == at) { clock->advance(10s); }
  }
  void end(auto&) {
    if (at >= 0) { return; }
    ::raise(SIGURG);
    signals->wait_for_stop(*sw::system_clock(), sw::clock::time_point::max());
    clock->advance(10s);
  }
};

/// A clock that moves to the end of each wait of the session's thread, once it is `impatient`. For a wait without an end, it moves by 10 s
/// and opens `door`.
class impatient_clock final : public sw::clock {
public:
  explicit impatient_clock(sw::test::gate& door) : door_(door) {}

  std::atomic<bool> impatient = false;
  const std::shared_ptr<sw::manual_clock> base = std::make_shared<sw::manual_clock>();

  [[nodiscard]] time_point now() const override { return base->now(); }
  [[nodiscard]] wall_time wall_now() const override { return base->wall_now(); }
  alarm_id call_at(time_point when, std::function<void()> action) override { return base->call_at(when, std::move(action)); }
  void cancel(alarm_id id) override { base->cancel(id); }
  using clock::wait_until;
  bool wait_until(std::unique_lock<std::mutex>& lock, std::condition_variable& condition, time_point when) override {
    if (!impatient || std::this_thread::get_id() != thread_) { return base->wait_until(lock, condition, when); }
    lock.unlock();
    if (when == time_point::max()) { door_.open(); }
    base->advance(when == time_point::max() ? duration(10s) : std::max(when - now(), duration(0)));
    lock.lock();
    return when == time_point::max();
  }

private:
  sw::test::gate& door_;
  std::thread::id thread_ = std::this_thread::get_id();
};

/// Closes `door`, at which writes of files with `part` in their paths wait from now on.
void hold_writes(const session_rig& rig, sw::test::gate& door, const std::string& part) {
  rig.files->before_each([&door, part](const sw::test::event& asked) {
    if (asked.kind == operation::write && asked.path.find(part) != std::string::npos) { door.pass(); }
  });
  door.close();
}

/// Gives the rig files that can be awaited. A session that does not wait for its best checkpoint leaves a thread behind, which may still
/// use the files and what the test has put into them.
class awaited_files {
public:
  explicit awaited_files(session_rig& rig) : rig_(rig) {
    auto files = rig.files;
    rig.files = {files.get(), [files, gone = std::make_shared<std::promise<void>>(std::move(gone_))](auto*) mutable {
                   files.reset();
                   gone->set_value();
                 }};
  }
  /// Blocks until only the rig has the files, and takes them from it.
  void join() {
    rig_.files.reset();
    are_gone_.wait();
  }

private:
  session_rig& rig_;
  std::promise<void> gone_;
  std::future<void> are_gone_ = gone_.get_future();
};

/// Adds more texts to a small queue in the run of step 3 than it can hold.
struct verbose_hook {
  std::shared_ptr<sw::summary::writer> writer;
  std::atomic<bool>* is_done;

  void after_run(auto& context, const auto&) {
    if (context.global_step() != 3) { return; }
    for (int count = 0; count < 10; ++count) { writer->add_text("text", std::string(100, 'x'), 3); }
    *is_done = true;
  }
};

/// Starts a thread that ends when `door` is open, and not because of a stop.
struct stubborn_thread_hook {
  std::shared_ptr<sw::test::gate> door;
  void after_create_session(auto&, sw::coordinator& threads) {
    threads.start_thread("stubborn", [at = door](const std::stop_token&) { at->pass(); });
  }
};

/// Stores the signals of the session.
struct signals_hook {
  std::shared_ptr<sw::session_signals>* into;
  void after_create_session(auto& session, auto&) { *into = session.signals(); }
};

/// Sends SIGURG as soon as a thread waits on the clock, and lets the grace of 1 s pass.
class end_of_process_while_waiting {
public:
  end_of_process_while_waiting(const std::shared_ptr<sw::manual_clock>& clock, const std::shared_ptr<sw::session_signals>* signals)
      : sender_(clock, [clock, signals] {
          ::raise(SIGURG);
          while (!(*signals)->process_ends()) { std::this_thread::yield(); }
          clock->advance(1s);
        }) {}

private:
  sw::test::once_waiting sender_;
};

}  // namespace

TEST_CASE("a hook that takes longer than the grace does not prevent the save after it, and a warning says what has not ended",
          "[training][preemption]") {
  sw::test::log_capture log;
  session_rig rig;
  const bool is_in_run = GENERATE(true, false);
  auto session = sw::monitored_training_session(rig.model, preemptible(rig), signalling_hook{is_in_run ? 3 : -1},
                                                slow_hook{rig.clock, is_in_run ? 3 : -1});
  sw::test::wait_for_saves(session);
  const auto before = rig.clock->now();
  sw::test::run_until(session, 3);
  session.close();
  CHECK(rig.steps() == "0 3");
  CHECK(rig.clock->now() - before == 10s);
  CHECK(log.contains(sw::log_level::warning, is_in_run ? "the grace of 1 s after the signal is over, and the session has not ended: a step"
                                                       : "the session has not ended: a hook has not returned from `end`"));
  CHECK(session.stop_reason().text.find("the state is saved") != std::string::npos);
}

TEST_CASE("a save after the end of the grace may take one more grace", "[training][preemption]") {
  const sw::test::log_capture log;
  sw::test::gate door;
  const auto time = std::make_shared<impatient_clock>(door);
  session_rig rig;
  hold_writes(rig, door, "model.ckpt-3");
  {
    auto session = sw::monitored_training_session(rig.model, preemptible(rig, time), signalling_hook{3}, slow_hook{time->base, 3});
    sw::test::wait_for_saves(session);
    sw::test::run_until(session, 3);
    const auto before = time->now();
    time->impatient = true;
    CHECK_THROWS_AS(session.close(), sw::deadline_exceeded_error);
    CHECK(time->now() - before == 1s);
  }
  door.open();
  rig.pool->join();
  CHECK(rig.steps() == "0 3");
}

TEST_CASE("an evaluation beside the training that takes longer than the grace does not prevent the save", "[training][preemption]") {
  sw::test::log_capture log;
  sw::test::gate door;
  const auto time = std::make_shared<impatient_clock>(door);
  session_rig rig;
  adding_model other;
  door.close();
  const std::int64_t every = GENERATE(3, 2);  // the signal is in a run without an evaluation, or in one that waits for the previous one
  CAPTURE(every);
  std::thread opener([&] {
    while (!log.contains(sw::log_level::warning, "the session waits until a batch of the evaluation")) { std::this_thread::yield(); }
    door.open();
  });
  {
    auto tested = sw::evaluate_every(every, sw::beside(other), evaluation_at{&door}, sw::measure("sum", &own_value));
    auto session = sw::monitored_training_session(rig.model, preemptible(rig, time), signalling_hook{4}, tested);
    sw::test::wait_for_saves(session);
    sw::test::run_until(session, 3);
    door.wait_for_somebody();
    const auto before = time->now();
    time->impatient = true;
    sw::test::run_until(session, 4);
    time->impatient = false;
    session.close();
    CHECK(time->now() - before == 750ms);
  }
  opener.join();
  CHECK(rig.steps() == "0 4");
  CHECK(log.contains(sw::log_level::warning, every == 3 ? "evaluation: the evaluation of step 3" : "evaluation: the evaluation of step 2"));
  adding_model resumed;
  auto again = sw::evaluate_every(every, sw::beside(other), evaluation_at{&door}, sw::measure("sum", &own_value));
  auto session = sw::monitored_training_session(resumed, preemptible(rig), again);
  CHECK(session.global_step() == 4);
  sw::test::run_until(session, 6);
  if (every == 2) { CHECK(again.value("sum").step() == 4); }
  session.close();
}

TEST_CASE("a close waits for an evaluation beside the training no longer than stop_grace_period_secs, and says so",
          "[training][preemption]") {
  const sw::test::log_capture log;
  sw::test::gate door;
  const auto time = std::make_shared<impatient_clock>(door);
  session_rig rig;
  adding_model other;
  door.close();
  auto options = rig.options();
  options.clock = time;
  options.saves.save_steps = 100;
  options.stop_grace_period_secs = 4;
  auto tested = sw::evaluate_every(3, sw::beside(other), evaluation_at{&door}, sw::measure("sum", &own_value));
  {
    auto session = sw::monitored_training_session(rig.model, options, tested);
    sw::test::wait_for_saves(session);
    sw::test::run_until(session, 3);
    const auto before = time->now();
    time->impatient = true;
    CHECK_THROWS_WITH(session.close(), ContainsSubstring("the evaluation of step 3 has not ended"));
    CHECK(time->now() - before >= 3s);
    CHECK(time->now() - before <= 4s);
    door.open();
  }
  rig.pool->join();
  CHECK(rig.steps() == "0 3");
}

TEST_CASE("a disk below best/ that takes longer than the grace does not prevent the save", "[training][preemption][best]") {
  sw::test::log_capture log;
  sw::test::gate door;
  const auto time = std::make_shared<impatient_clock>(door);
  session_rig rig;
  awaited_files files(rig);
  hold_writes(rig, door, "/best/");
  const bool is_waiting = GENERATE(false, true);  // whether the session already waits for the earlier best state when the signal arrives
  CAPTURE(is_waiting);
  {
    auto session = sw::monitored_training_session(
        rig.model, preemptible(rig, time), signalling_hook{is_waiting ? -1 : 2},
        sw::best_checkpoint_hook{{.mode = sw::metric_mode::maximize, .saver = {.file_system = rig.files}}, &adding_model::result::loss});
    sw::test::wait_for_saves(session);
    sw::test::run_until(session, 1);
    const auto before = time->now();
    if (is_waiting) {
      const sw::test::once_waiting sender(time->base, [&] {
        time->impatient = true;
        ::raise(SIGURG);
      });
      sw::test::run_until(session, 2);
    } else {
      time->impatient = true;
      sw::test::run_until(session, 2);
    }
    CHECK(session.should_stop());
    CHECK_THROWS_AS(session.close(), sw::deadline_exceeded_error);
    CHECK(time->now() - before == 1s);
  }
  rig.pool->join();
  CHECK(rig.steps() == "0 2");
  CHECK(log.contains(sw::log_level::warning, "the checkpoint of the session is committed before it"));
  door.open();
  files.join();
}

TEST_CASE("an evaluation in the loop stops between two batches at the end of the grace, and the next run repeats it before its first step",
          "[training][preemption][evaluate_every]") {
  sw::test::log_capture log;
  const std::vector<double> batches(10, 1);
  struct outcome {
    std::int64_t evaluated_at = 0, best_step = 0, last_step = 0;
    double best = 0;
    adding_model model;
  };
  const auto train = [&](session_rig& rig, int signal_at, std::int64_t until, int& calls) {
    std::shared_ptr<sw::session_signals> signals;
    const auto evaluate = [&](const adding_model& model, double batch) {
      if (++calls == signal_at) {
        ::raise(SIGURG);
        signals->wait_for_stop(*sw::system_clock(), sw::clock::time_point::max());
      }
      rig.clock->advance(250ms);
      return static_cast<double>(model.sum) * batch;
    };
    outcome found;
    auto tested = sw::evaluate_every(3, batches, evaluate, sw::measure("sum", &own_value));
    auto session = sw::monitored_training_session(found.model, preemptible(rig), signals_hook{&signals}, tested,
                                                  sw::best_checkpoint_hook{{.saver = {.file_system = rig.files}}, tested.value("sum")},
                                                  sw::early_stopping_hook{{.patience = 2}, tested.value("sum")});
    sw::test::wait_for_saves(session);
    found.evaluated_at = tested.value("sum").step();
    while (!session.should_stop() && session.global_step() < until) { session.run(session.global_step() + 1); }
    found.last_step = session.global_step();
    session.close();
    if (const auto best = sw::best_checkpoint(rig.directory.path())) {
      found.best_step = best->step;
      found.best = best->value;
    }
    return found;
  };
  session_rig whole;
  int calls = 0;
  const auto wanted = train(whole, -1, 20, calls);
  CHECK(wanted.best_step == 3);
  CHECK(wanted.last_step == 9);

  session_rig rig;
  calls = 0;
  const auto before = rig.clock->now();
  const auto first = train(rig, 1, 20, calls);
  CHECK(calls == 3);
  CHECK(rig.clock->now() - before == 750ms);
  CHECK(first.best_step == 0);
  CHECK(rig.steps() == "0 3");
  CHECK(log.contains(sw::log_level::warning, "a run that continues from this step evaluates it again"));
  calls = 0;
  const auto second = train(rig, -1, 20, calls);
  CHECK(second.evaluated_at == 3);
  CHECK(calls == 30);
  CHECK(second.best_step == wanted.best_step);
  CHECK(second.best == wanted.best);
  CHECK(second.last_step == wanted.last_step);
  CHECK(sw::test::same(second.model, wanted.model));
}

TEST_CASE("checkpoint_now before the end of the process is an error if the checkpoint would come too late", "[training][preemption]") {
  const sw::test::log_capture log;
  session_rig rig;
  rig.files->before_each([&](const sw::test::event& asked) {
    if (asked.kind == operation::write && asked.path.find(".data-") != std::string::npos) { rig.clock->advance(10s); }
  });
  auto session = sw::monitored_training_session(rig.model, preemptible(rig), signalling_hook{3});
  sw::test::wait_for_saves(session);  // the checkpoint of step 0 took 10 s
  sw::test::run_until(session, 3);
  CHECK_THROWS_WITH(session.checkpoint_now(), ContainsSubstring("the checkpoint of step 3 was not made"));
  session.close();
  CHECK(rig.steps() == "0");
}

TEST_CASE("a signal limits the wait of checkpoint_now for a disk that hangs", "[training][preemption]") {
  const sw::test::log_capture log;
  sw::test::gate door;
  const auto time = std::make_shared<impatient_clock>(door);
  session_rig rig;
  hold_writes(rig, door, "model.ckpt-3");
  auto options = preemptible(rig, time);
  auto session = sw::monitored_training_session(rig.model, options);
  sw::test::wait_for_saves(session);
  sw::test::run_until(session, 3);
  const auto before = time->now();
  {
    const sw::test::once_waiting sender(time->base, [&] {
      time->impatient = true;
      ::raise(SIGURG);
    });
    CHECK_THROWS_AS(session.checkpoint_now(), sw::deadline_exceeded_error);
  }
  CHECK(time->now() - before == 750ms);
  CHECK_THROWS_AS(session.close(), sw::deadline_exceeded_error);
  CHECK(time->now() - before == 1s);
  door.open();
  rig.pool->join();
}

TEST_CASE("a signal limits the wait of a summary for a disk that hangs: the summary is dropped, and the state is saved",
          "[training][preemption]") {
  sw::test::log_capture log;
  sw::test::gate door;
  session_rig rig;
  const auto threads = std::make_shared<sw::io::pool>(1);
  const auto writer = std::make_shared<sw::summary::writer>(
      rig.directory / "logs",
      sw::summary::writer_options{.file_system = rig.files, .threads = threads, .clock = rig.clock, .max_queue_bytes = 200});
  std::atomic<bool> is_done = false;
  auto session = sw::monitored_training_session(
      rig.model, preemptible(rig), verbose_hook{writer, &is_done},
      sw::summary_saver_hook{{.writer = writer, .save_steps = 100}, sw::summary::scalar("loss", &adding_model::result::loss)});
  sw::test::run_until(session, 2);
  sw::test::wait_for_saves(session);
  hold_writes(rig, door, "events.out");
  {
    const sw::test::once_waiting sender(rig.clock, [&] {
      ::raise(SIGURG);
      while (!is_done) {
        rig.clock->advance(10ms);
        std::this_thread::yield();
      }
    });
    sw::test::run_until(session, 3);
  }
  CHECK(session.should_stop());
  CHECK(log.contains(sw::log_level::warning, "records are dropped"));
  door.open();
  session.close();
  CHECK(rig.steps() == "0 3");
}

TEST_CASE("a signal during a close that waits because of another stop limits this wait", "[training][preemption]") {
  const sw::test::log_capture log;
  sw::test::gate door;
  session_rig rig;
  std::shared_ptr<sw::session_signals> signals;
  auto session = sw::monitored_training_session(rig.model, preemptible(rig), signals_hook{&signals});
  sw::test::wait_for_saves(session);
  hold_writes(rig, door, "model.ckpt-3");
  sw::test::run_until(session, 3);
  session.request_stop("enough");
  {
    const end_of_process_while_waiting sender(rig.clock, &signals);
    CHECK_THROWS_AS(session.close(), sw::deadline_exceeded_error);
  }
  door.open();
  rig.pool->join();
  CHECK(rig.steps() == "0 3");
}

TEST_CASE("a signal during a close that waits for the flush of a summary limits this wait", "[training][preemption]") {
  const sw::test::log_capture log;
  sw::test::gate door;
  session_rig rig;
  std::shared_ptr<sw::session_signals> signals;
  const auto threads = std::make_shared<sw::io::pool>(1);
  const auto writer = std::make_shared<sw::summary::writer>(
      rig.directory / "logs", sw::summary::writer_options{.file_system = rig.files, .threads = threads, .clock = rig.clock});
  auto session = sw::monitored_training_session(
      rig.model, unsaved(rig), signals_hook{&signals},
      sw::summary_saver_hook{{.writer = writer, .save_steps = 1}, sw::summary::scalar("loss", &adding_model::result::loss)});
  hold_writes(rig, door, "events.out");
  sw::test::run_until(session, 3);
  {
    const end_of_process_while_waiting sender(rig.clock, &signals);
    CHECK_THROWS_AS(session.close(), sw::deadline_exceeded_error);
  }
  door.open();
}

TEST_CASE("a signal during a close that waits for a thread of a hook limits this wait, and names the thread", "[training][preemption]") {
  sw::test::log_capture log;
  const auto door = std::make_shared<sw::test::gate>();
  door->close();
  session_rig rig;
  std::shared_ptr<sw::session_signals> signals;
  auto session = sw::monitored_training_session(rig.model, unsaved(rig), signals_hook{&signals}, stubborn_thread_hook{door});
  sw::test::run_until(session, 3);
  {
    const end_of_process_while_waiting sender(rig.clock, &signals);
    session.close();
  }
  CHECK(log.contains(sw::log_level::warning, "threads still running: stubborn"));
  door->open();
}

TEST_CASE("the close of a preempted process ends within 2 s while anything hangs: the state is saved, or an error says why not",
          "[training][preemption]") {
  struct row {
    const char* hangs;         // a part of the path of the files whose writes hang, or "evaluation"
    std::int64_t from;         // the hang begins before this step
    std::int64_t every;        // the period of the evaluation beside the training
    bool is_saved;             // whether the state becomes durable during the hang
    const char* why;           // a part of the error
    bool fails_first = false;  // the first write fails and is retried 5 s later
  };
  const auto given =
      GENERATE(row{"model.ckpt-4", 4, 1, false, "still being written"}, row{"model.ckpt-4", 4, 1, false, "still being written", true},
               row{"model.ckpt-2", 2, 1, false, "earlier saves have not ended"}, row{"/best/", 3, 1, true, "still being written"},
               row{"events.out", 4, 1, true, ""}, row{"evaluation", 2, 2, true, ""});
  CAPTURE(given.hangs, given.fails_first);
  const sw::test::log_capture log;
  sw::test::gate door;
  const auto time = std::make_shared<impatient_clock>(door);
  std::atomic<bool> is_hanging = false;
  std::atomic<bool> fails_next = given.fails_first;
  session_rig rig;
  awaited_files files(rig);
  rig.pool = std::make_shared<sw::io::pool>(4);
  rig.files->before_each([&](const sw::test::event& asked) {
    if (asked.kind != operation::write || asked.path.find(given.hangs) == std::string::npos || !is_hanging) { return; }
    if (!fails_next.exchange(false)) { door.pass(); }
  });
  if (given.fails_first) { rig.files->inject({.kind = operation::write, .path_contains = given.hangs}); }
  sw::test::gate open_door;
  adding_model other;
  {
    auto options = preemptible(rig, time);
    options.saves.save_steps = 2;
    options.saves.saver.max_staged_bytes = 1;
    options.saves.saver.on_error = sw::on_save_error::retry(3, 5s);
    auto tested =
        sw::evaluate_every(given.every, sw::beside(other), evaluation_at{std::string(given.hangs) == "evaluation" ? &door : &open_door},
                           sw::measure("sum", &own_value));
    auto session = sw::monitored_training_session(
        rig.model, options, signalling_hook{4}, tested,
        sw::best_checkpoint_hook{{.mode = sw::metric_mode::maximize, .saver = {.file_system = rig.files}}, tested.value("sum")});
    sw::test::run_until(session, given.from - 1);
    sw::test::wait_for_saves(session);
    is_hanging = true;
    door.close();
    sw::test::run_until(session, 3);
    if (given.from != 2 || given.is_saved) { sw::test::wait_for_saves(session); }
    const auto before = time->now();
    time->impatient = true;
    std::string why;
    try {
      session.run(std::int64_t{4});
    } catch (const sw::error& failure) { why = failure.what(); }
    while (given.fails_first && !log.contains(sw::log_level::warning, "retry 1 of 3")) { std::this_thread::yield(); }
    try {
      session.close();
    } catch (const sw::error& failure) { why += failure.what(); }
    CHECK(time->now() - before <= 2s);
    CHECK_THAT(why, ContainsSubstring(given.why));
    if (given.is_saved) { sw::test::wait_for_saves(session); }
    CHECK(rig.steps().ends_with(" 4") == given.is_saved);
    door.open();
  }
  rig.pool->join();
  files.join();
}
