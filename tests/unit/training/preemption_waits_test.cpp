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

#include <csignal>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace sw = stepwell;
using namespace std::chrono_literals;
using sw::test::adding_model;
using sw::test::operation;
using sw::test::session_rig;
using sw::test::signalling_hook;

namespace {

/// Returns options with a grace of 1 s after SIGURG, in which only the first and the last state are saved.
sw::test::adding_options preemptible(const session_rig& rig) {
  auto made = rig.options();
  made.save_checkpoint_steps = 100;
  made.stop_on = {SIGURG};
  made.preemption_grace = 1s;
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

/// A thread that moves `clock` by `length` when one more thread waits on it. If no thread begins to wait within 10 s of real time, it also
/// opens `door`.
class while_waiting {
public:
  while_waiting(std::shared_ptr<sw::manual_clock> clock, sw::clock::duration length, sw::test::gate& door)
      : thread_([clock, length, &door, before = clock->pending()] {
          const bool is_waited_for = clock->wait_for_pending(before + 1);
          clock->advance(is_waited_for ? length : 10s);
          if (!is_waited_for) { door.open(); }
        }) {}
  ~while_waiting() { thread_.join(); }

private:
  std::thread thread_;
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

/// Stores the signals of the session.
struct signals_hook {
  std::shared_ptr<sw::session_signals>* into;
  void after_create_session(auto& session, auto&) { *into = session.signals(); }
};

}  // namespace

TEST_CASE("a hook that takes longer than the grace does not prevent the save after it", "[training][preemption]") {
  const sw::test::log_capture log;
  session_rig rig;
  const bool is_in_run = GENERATE(true, false);
  auto session = sw::monitored_training_session(rig.model, preemptible(rig), signalling_hook{is_in_run ? 3 : -1},
                                                slow_hook{rig.clock, is_in_run ? 3 : -1});
  const auto before = rig.clock->now();
  sw::test::run_until(session, 3);
  session.close();
  CHECK(rig.steps() == "0 3");
  CHECK(rig.clock->now() - before == 10s);
  CHECK(session.stop_reason().text.find("the state is saved") != std::string::npos);
}

TEST_CASE("a save after the end of the grace may take one more grace", "[training][preemption]") {
  const sw::test::log_capture log;
  session_rig rig;
  sw::test::gate door;
  rig.files->before_each([&](const sw::test::event& asked) {
    if (asked.kind == operation::write && asked.path.find("model.ckpt-3") != std::string::npos) { door.pass(); }
  });
  door.close();
  {
    auto session = sw::monitored_training_session(rig.model, preemptible(rig), signalling_hook{3}, slow_hook{rig.clock, 3});
    sw::test::run_until(session, 3);
    const auto before = rig.clock->now();
    const sw::test::once_waiting mover(rig.clock, [&] { rig.clock->advance(1s); });
    CHECK_THROWS_AS(session.close(), sw::deadline_exceeded_error);
    CHECK(rig.clock->now() - before == 1s);
  }
  door.open();
  rig.pool->join();
  CHECK(rig.steps() == "0 3");
}

TEST_CASE("an evaluation beside the training that takes longer than the grace does not prevent the save", "[training][preemption]") {
  sw::test::log_capture log;
  session_rig rig;
  adding_model other;
  sw::test::gate door;
  door.close();
  const std::int64_t every = GENERATE(3, 2);  // the signal is in a run without an evaluation, or in one that waits for the previous one
  CAPTURE(every);
  auto tested = sw::evaluate_every(every, sw::beside(other), evaluation_at{&door}, sw::measure("sum", &own_value));
  {
    auto session = sw::monitored_training_session(rig.model, preemptible(rig), signalling_hook{4}, tested);
    sw::test::run_until(session, 3);
    const auto before = rig.clock->now();
    {
      const while_waiting mover(rig.clock, 750ms, door);
      sw::test::run_until(session, 4);
    }
    session.close();
    CHECK(rig.clock->now() - before == 750ms);
    door.open();
  }
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
  session_rig rig;
  adding_model other;
  sw::test::gate door;
  door.close();
  auto options = rig.options();
  options.save_checkpoint_steps = 100;
  options.stop_grace_period_secs = 4;
  auto tested = sw::evaluate_every(3, sw::beside(other), evaluation_at{&door}, sw::measure("sum", &own_value));
  {
    auto session = sw::monitored_training_session(rig.model, options, tested);
    sw::test::run_until(session, 4 - 1);
    const auto before = rig.clock->now();
    {
      const while_waiting mover(rig.clock, 3s, door);
      CHECK_THROWS_WITH(session.close(), ContainsSubstring("the evaluation of step 3 has not ended"));
    }
    CHECK(rig.clock->now() - before == 3s);
    door.open();
  }
  CHECK(rig.steps() == "0 3");
}

TEST_CASE("a disk below best/ that takes longer than the grace does not prevent the save", "[training][preemption][best]") {
  sw::test::log_capture log;
  session_rig rig;
  sw::test::gate door;
  rig.files->before_each([&](const sw::test::event& asked) {
    if (asked.kind == operation::write && asked.path.find("/best/") != std::string::npos) { door.pass(); }
  });
  door.close();
  const bool is_waiting = GENERATE(false, true);  // whether the session already waits for the earlier best state when the signal arrives
  CAPTURE(is_waiting);
  {
    auto session = sw::monitored_training_session(
        rig.model, preemptible(rig), signalling_hook{is_waiting ? -1 : 2},
        sw::best_checkpoint_hook{{.mode = sw::metric_mode::maximize, .saver = {.file_system = rig.files}}, &adding_model::result::loss});
    sw::test::run_until(session, 1);
    const auto before = rig.clock->now();
    if (is_waiting) {
      const sw::test::once_waiting sender(rig.clock, [] { ::raise(SIGURG); });
      sw::test::run_until(session, 2);
    } else {
      sw::test::run_until(session, 2);
    }
    CHECK(session.should_stop());
    const sw::test::once_waiting mover(rig.clock, [&] { rig.clock->advance(1s); });
    CHECK_THROWS_AS(session.close(), sw::deadline_exceeded_error);
    CHECK(rig.clock->now() - before == 1s);
  }
  rig.pool->join();
  CHECK(rig.steps() == "0 2");
  CHECK(log.contains(sw::log_level::warning, "the checkpoint of the session is committed before it"));
  door.open();
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
                                                  sw::early_stopping_hook{tested.value("sum"), {.patience = 2}});
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
