// SPDX-License-Identifier: Apache-2.0
//
// Tests of a chief and its workers in one process, from the first wait to the last checkpoint.
#include "support/catch.hpp"
#include "support/checkpoint_files.hpp"
#include "support/creation_rig.hpp"
#include "support/log_capture.hpp"
#include "support/shared_model.hpp"

#include <stepwell/checkpoint/checkpoint_reader.hpp>
#include <stepwell/checkpoint/find_checkpoints.hpp>
#include <stepwell/hooks/best_checkpoint_hook.hpp>
#include <stepwell/hooks/checkpoint_saver_hook.hpp>
#include <stepwell/hooks/early_stopping_hook.hpp>
#include <stepwell/hooks/evaluate_every.hpp>
#include <stepwell/hooks/scheduled_hook.hpp>
#include <stepwell/hooks/stop_hooks.hpp>
#include <stepwell/training/monitored_training_session.hpp>

#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace sw = stepwell;
using namespace std::chrono_literals;
using namespace sw::test;

namespace {

const std::string master = "local:training";

struct aborts_when_told {
  bool* is_told;
  void before_run(auto&) {
    if (std::exchange(*is_told, false)) { throw sw::aborted_error("told to"); }
  }
};

struct rolls_back {
  void after_run(auto& context, const auto&) { context.request_rollback({.why = "the loss is bad"}); }
};

/// Makes another session do a step between a run of this session and the end of the boundary that follows it.
struct stepped_between_hook {
  struct work final : sw::boundary_work {
    void process_events() override {
      if (const auto step = std::exchange(*step_another, nullptr)) { step(); }
    }
    std::function<void()>* step_another = nullptr;
  };
  std::function<void()> step_another;

  void after_create_session(auto& session, auto& /*threads*/) {
    const auto made = std::make_shared<work>();
    made->step_another = &step_another;
    session.add_work(made);
  }
  void after_run(auto& context, const auto&) { context.signals()->notify(); }
};

struct rated_model : shared_model {
  double rate = 1;
};

/// Waits before each run until another session is in a step, but not for ever: the other sessions may have ended.
struct awaits_others_hook {
  static constexpr auto phase = sw::hook_phase::observe;
  const rated_model& model;
  void before_run(auto& /*context*/) {
    for (int tries = 0; model.inside == 0 && tries < 1000; ++tries) { std::this_thread::yield(); }
  }
};

sw::checkpoint_saver_hook saver_in(const temporary_directory& directory, const std::shared_ptr<fault_file_system>& files) {
  return sw::checkpoint_saver_hook({.checkpoint_dir = directory.path(), .save_steps = 10, .saver = {.file_system = files}});
}
sw::stop_at_step_hook stop_at(std::int64_t step) { return sw::stop_at_step_hook({.last_step = step}); }

}  // namespace

TEST_CASE("D-3 workers wait until the chief has made the model ready, and are woken when it is", "[training][master]") {
  shared_model model;
  std::atomic<int> joined = 0;
  constexpr int count = 3;
  const auto clock = std::make_shared<sw::manual_clock>();  // stands still, so the test fails if a session polls
  std::vector<std::jthread> workers;
  for (int i = 0; i < count; ++i) {
    workers.emplace_back([&] {
      sw::monitored_session worker(options_on(clock), worker_of(model, master));
      ++joined;
      worker.run();
    });
  }
  REQUIRE(clock->wait_for_pending(count));
  CHECK(joined == 0);
  sw::monitored_session chief(options_on(clock), chief_of(model, master));
  workers.clear();
  CHECK(joined == count);
  CHECK(chief.global_step() == count);
}

TEST_CASE("a worker cannot roll back, and the error says that the chief can", "[training][master]") {
  sw::test::log_capture log;
  shared_model model;
  const auto clock = std::make_shared<sw::manual_clock>();
  sw::monitored_session chief(options_on(clock), chief_of(model, master));
  sw::monitored_session worker(options_on(clock), worker_of(model, master), rolls_back{});
  CHECK_THROWS_WITH(worker.run(), ContainsSubstring("a worker cannot roll back (the loss is bad)") && ContainsSubstring("chief_only"));
  CHECK(worker.metrics().rollbacks == 0);
}

TEST_CASE("a worker cannot save the best checkpoints, and says who can", "[training][master][best]") {
  const log_capture log;
  shared_model model;
  const auto options = [&](bool is_chief) {
    return sw::training_options{.master = master, .is_chief = is_chief, .clock = std::make_shared<sw::manual_clock>()};
  };
  auto chief = sw::monitored_training_session(model, options(true));
  CHECK_THROWS_WITH(sw::monitored_training_session(model, options(false), sw::best_checkpoint_hook{&shared_model::result::count}),
                    ContainsSubstring("best_checkpoint_hook: this session has no directory") && ContainsSubstring("chief_only"));
  auto worker =
      sw::monitored_training_session(model, options(false), sw::chief_only(sw::best_checkpoint_hook{&shared_model::result::count}));
  worker.run();
  worker.close();
  chief.close();
}

TEST_CASE("if workers step the model before the best state is saved, the state at that time is saved", "[training][master][best]") {
  const log_capture log;
  const temporary_directory directory;
  shared_model model;
  auto chief = sw::monitored_training_session(
      model, {.master = master, .checkpoint_dir = directory.path()}, stepped_between_hook{},
      sw::best_checkpoint_hook{{.mode = sw::metric_mode::maximize}, [](const shared_model::result& step) { return 10 * step.count; }});
  sw::monitored_session worker(worker_of(model, master));
  chief.hook<stepped_between_hook>().step_another = [&] { worker.run(); };
  chief.run();
  chief.close();
  worker.close();
  const auto best = sw::best_checkpoint(directory.path());
  REQUIRE(best);
  CHECK(best->step == 2);
  CHECK(best->value == 10);  // measured after step 1
  CHECK(sw::checkpoint_reader(best->prefix).read("global_step").as<std::int64_t>()[0] == 2);
}

TEST_CASE("a chief with busy workers sets its rate between their steps, evaluates a whole model, and restores its best state",
          "[training][master][evaluate_every][scheduled][early_stopping]") {
  const log_capture log;
  const temporary_directory directory;
  rated_model model;
  model.before = [](std::int64_t) {
    for (int i = 0; i < 10; ++i) { std::this_thread::yield(); }
  };
  bool is_disturbed = false;  // used by the chief only
  const auto count_of = [&](const rated_model& now) {
    is_disturbed |= now.inside != 0 || !now.is_whole();
    return static_cast<double>(now.count);
  };
  const auto rate_of = [&](rated_model& now) -> double& {
    is_disturbed |= now.inside != 0;
    return now.rate;
  };
  const auto tested = sw::evaluate_every({.every = 1, .log = false}, count_of, sw::measure("count", [](double value) { return value; }));
  const auto options = [&](bool is_chief) {
    return sw::training_options{.master = master,
                                .is_chief = is_chief,
                                .checkpoint_dir = directory.path(),
                                .saves = {.saver = {.sync = false}},
                                .clock = std::make_shared<sw::manual_clock>()};
  };
  auto chief = sw::monitored_training_session(model, options(true), awaits_others_hook{model},
                                              sw::scheduled(rate_of, [](std::int64_t step) { return 1.0 / static_cast<double>(1 + step); }),
                                              tested, sw::best_checkpoint_hook{tested.value("count")},
                                              sw::early_stopping_hook{{.patience = 100, .restore_best = true}, tested.value("count")});
  std::atomic<bool> saw_a_mess = false;
  std::vector<std::jthread> workers;
  for (int i = 0; i < 2; ++i) {
    workers.emplace_back([&](const std::stop_token& stop) {
      auto worker = sw::monitored_training_session(model, options(false), looking_hook());
      while (!stop.stop_requested()) { worker.run(); }
      saw_a_mess = saw_a_mess || worker.hook<looking_hook>().saw_a_mess;
      worker.close();
    });
  }
  for ([[maybe_unused]] const auto& step : chief.steps()) {}
  const auto reached = chief.global_step();
  chief.close();
  workers.clear();
  CHECK(chief.stop_reason().cause == sw::stop_cause::no_progress);
  CHECK(log.contains(sw::log_level::info, "restored the best state"));
  CHECK(model.rate < 1);
  CHECK(reached > 100);
  CHECK_FALSE(is_disturbed);
  CHECK_FALSE(saw_a_mess);
  CHECK_FALSE(model.was_disturbed);
  CHECK(model.is_whole());
}

TEST_CASE("SM-10 a worker whose chief does not come gives up in time", "[training][master]") {
  shared_model model;
  const auto clock = std::make_shared<sw::manual_clock>();
  std::string message;
  {
    std::jthread worker([&] {
      message = message_of<sw::deadline_exceeded_error>(
          [&] { const sw::monitored_session session(options_on(clock), worker_of(model, master, 3)); });
    });
    REQUIRE(clock->wait_for_pending(1));
    clock->advance(3s);
  }
  CHECK(message.find("Session was not ready after waiting 3 secs.") != std::string::npos);
  CHECK(message.find("the chief has not made the model ready yet") != std::string::npos);
  CHECK(sw::sessions_at(master) == 0);
}

TEST_CASE("an application that stops ends a worker's wait for its chief", "[training][master]") {
  shared_model model;
  const auto clock = std::make_shared<sw::manual_clock>();
  std::stop_source stop;
  std::string message;
  {
    std::jthread worker([&] {
      auto options = options_on(clock);
      options.stop_token = stop.get_token();
      message = message_of<sw::cancelled_error>([&] { const sw::monitored_session session(options, worker_of(model, master)); });
    });
    REQUIRE(clock->wait_for_pending(1));
    stop.request_stop();
  }
  CHECK(message.find("a stop was requested") != std::string::npos);
}

TEST_CASE("HOOK-STOP-8 all sessions share the count of steps, and each may overshoot by the step that it has begun", "[training][master]") {
  shared_model model;
  constexpr int count = 3;
  constexpr int last = 200;
  std::barrier all_there(count + 1);
  std::atomic<int> own_steps = 0;
  std::atomic<int> at_last_step = 0;
  const auto train = [&](auto& session) {
    all_there.arrive_and_wait();
    for ([[maybe_unused]] const auto& step : session.steps()) { ++own_steps; }
    at_last_step += session.stop_reason().cause == sw::stop_cause::last_step;
    session.close();
  };
  std::vector<std::jthread> workers;
  for (int i = 0; i < count; ++i) {
    workers.emplace_back([&] {
      sw::monitored_session worker(options_on(std::make_shared<sw::manual_clock>()), worker_of(model, master), stop_at(last));
      train(worker);
    });
  }
  sw::monitored_session chief(options_on(std::make_shared<sw::manual_clock>()), chief_of(model, master), stop_at(last));
  train(chief);
  workers.clear();
  CHECK(at_last_step == count + 1);
  CHECK(model.count >= last);
  CHECK(model.count <= last + count);
  CHECK(model.count == own_steps);
  CHECK(chief.global_step() >= last);  // the step when the chief closed
}

TEST_CASE("the chief saves what all have done, and what it restores is whole", "[training][master]") {
  const temporary_directory directory;
  const auto files = fast_faulty_files();
  constexpr int last = 95;
  {
    shared_model model;
    constexpr int count = 2;
    std::barrier all_there(count + 1);
    std::vector<std::jthread> workers;
    for (int i = 0; i < count; ++i) {
      workers.emplace_back([&] {
        sw::monitored_session worker(options_on(std::make_shared<sw::manual_clock>()), worker_of(model, master), stop_at(last));
        all_there.arrive_and_wait();
        for ([[maybe_unused]] const auto& step : worker.steps()) {}
      });
    }
    sw::monitored_session chief(options_on(std::make_shared<sw::manual_clock>()), chief_of(model, master, directory.path()),
                                saver_in(directory, files), stop_at(last));
    all_there.arrive_and_wait();
    for ([[maybe_unused]] const auto& step : chief.steps()) {}
    workers.clear();
    chief.close();
    const auto newest = sw::latest_whole_checkpoint(directory.path());
    REQUIRE(newest);
    CHECK(newest->step() == model.count);
  }
  for (const auto& prefix : sw::list_checkpoints(directory.path())) {
    const sw::checkpoint_reader reader(prefix);
    const auto count = reader.read("count").as<std::int64_t>().front();
    CHECK(reader.read("global_step").as<std::int64_t>().front() == count);
    const auto copies = reader.read("copies");
    for (const auto copy : copies.as<std::int64_t>()) { REQUIRE(copy == count); }
  }
}

TEST_CASE("a chief that returns after a failure continues from its newest checkpoint, and so do its workers", "[training][master]") {
  log_capture log;
  const temporary_directory directory;
  const auto files = fast_faulty_files();
  shared_model model;
  bool fails = false;
  sw::monitored_session chief(options_on(std::make_shared<sw::manual_clock>()), chief_of(model, master, directory.path()),
                              saver_in(directory, files), aborts_when_told{&fails});
  sw::monitored_session worker(options_on(std::make_shared<sw::manual_clock>()), worker_of(model, master));
  for (int i = 0; i < 6; ++i) {
    chief.run();
    worker.run();
  }  // saved at 0 and at 11, by the chief's steps
  worker.run();
  CHECK(model.count == 13);
  fails = true;
  CHECK(chief.run().count == 12);
  CHECK(worker.run().count == 13);
  CHECK(worker.metrics().recoveries == 1);
  CHECK(model.is_whole());
  CHECK(chief.restored_from() == directory / "model.ckpt-11");
}
