// SPDX-License-Identifier: Apache-2.0
//
// Tests of model sessions connected to a master: exclusive steps, generations and the shared global step. Only the
// tests tagged [threads] use several threads.
#include "support/catch.hpp"
#include "support/log_capture.hpp"
#include "support/shared_model.hpp"
#include "support/toy_model.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace sw = stepwell;
using sw::test::chief_of;
using sw::test::counting_model;
using sw::test::looking_hook;
using sw::test::options_on;
using sw::test::shared_model;
using sw::test::worker_of;

namespace {

const std::string master = "local:steps";

/// A hook that throws a transient error before the run if `is_told` is set.
struct aborting_hook {
  bool* is_told;
  void before_run(auto&) {
    if (std::exchange(*is_told, false)) { throw sw::aborted_error("told to"); }
  }
};

struct step_owner {
  std::int64_t steps = 0;
  std::int64_t& global_step() { return steps; }
  int step() {
    steps += 2;
    return 0;
  }
  sw::variable_list variables() { return sw::variables({}); }
};

struct crowd_model {
  static constexpr bool concurrent_steps = true;
  std::atomic<int> inside = 0;
  int step() {
    ++inside;
    while (inside < 2) { std::this_thread::yield(); }  // never returns if steps are serialised
    return 0;
  }
  sw::variable_list variables() { return sw::variables({}); }
};

struct batch_source {
  std::int64_t next = 1;
  const std::int64_t* peek() { return &next; }
  void advance() { ++next; }
};
struct seekable_batch_source : batch_source {
  std::uint64_t position() const { return static_cast<std::uint64_t>(next); }
  void seek(std::uint64_t to) { next = static_cast<std::int64_t>(to); }
};

auto held() { return std::make_shared<sw::manual_clock>(); }

}  // namespace

TEST_CASE("without a master a session is alone, and costs and waits for nothing", "[session][master]") {
  counting_model model;
  sw::model_session<counting_model> raw(model, {});
  CHECK(raw.is_chief_ready());
  CHECK(raw.run() == 1);
  raw.close();
  CHECK(raw.run() == 2);
  CHECK(raw.global_step() == 2);
}

TEST_CASE("an invalid master is refused when the session is made", "[session][master]") {
  counting_model model;
  CHECK_THROWS_AS(sw::monitored_session(chief_of(model, "grpc://somewhere")), sw::invalid_argument_error);
}

TEST_CASE("the global step is shared by all sessions at a master", "[session][master]") {
  shared_model model;
  sw::monitored_session chief(options_on(held()), chief_of(model, master));
  sw::monitored_session worker(options_on(held()), worker_of(model, master));
  chief.run();
  worker.run();
  worker.run();
  CHECK(chief.global_step() == 3);
  CHECK(worker.global_step() == 3);
  CHECK(chief.raw_session().run().count == 4);  // calls no hooks and needs no lock of the caller
  worker.close();
  chief.run();
  chief.close();
  CHECK(worker.global_step() == 4);  // unchanged after the close
  CHECK(chief.global_step() == 5);
  CHECK(sw::sessions_at(master) == 0);
}

TEST_CASE("a model that owns the global step keeps owning it", "[session][master]") {
  step_owner model;
  sw::monitored_session chief(options_on(held()), chief_of(model, master));
  sw::monitored_session worker(options_on(held()), worker_of(model, master));
  worker.run();
  CHECK(chief.global_step() == 2);
  chief.run();
  CHECK(worker.global_step() == 4);
}

TEST_CASE("two chiefs at a master are an error, a chief after another is not", "[session][master]") {
  shared_model model;
  {
    sw::monitored_session chief(options_on(held()), chief_of(model, master));
    CHECK_THROWS_AS(sw::monitored_session(options_on(held()), chief_of(model, master)), sw::failed_precondition_error);
    CHECK_NOTHROW(chief.run());
  }
  CHECK_NOTHROW(sw::monitored_session(options_on(held()), chief_of(model, master)));
}

TEST_CASE("SM-8 a chief that recovers takes back what all have done since; a worker's next step is refused and done again",
          "[session][master]") {
  sw::test::log_capture log;
  shared_model model;
  bool fails = false;
  std::vector<std::int64_t> batches;
  model.before = [&](std::int64_t batch) { batches.push_back(batch); };
  sw::monitored_session chief(options_on(held()), chief_of(model, master), aborting_hook{&fails});
  sw::monitored_session worker(options_on(held()), worker_of(model, master));
  chief.run(1);
  worker.run(2);
  worker.run(3);
  CHECK(model.count == 3);
  fails = true;
  CHECK(chief.run(4).count == 1);  // the chief's own restore does not abort the chief
  CHECK(worker.global_step() == 1);
  CHECK(worker.metrics().recoveries == 0);
  CHECK(worker.run(5).count == 2);
  CHECK(worker.metrics().recoveries == 1);
  CHECK(batches == std::vector<std::int64_t>{1, 2, 3, 4, 5});  // the rejected step did not reach the model
  CHECK(model.is_whole());
}

TEST_CASE("a worker's recovery does not restore: the chief's steps stay, and its own source stays where it is", "[session][master]") {
  sw::test::log_capture log;
  shared_model model;
  std::vector<std::int64_t> batches;
  model.before = [&](std::int64_t batch) { batches.push_back(batch); };
  bool chief_fails = false;
  bool worker_fails = false;
  sw::monitored_session chief(options_on(held()), chief_of(model, master), aborting_hook{&chief_fails});
  sw::monitored_session worker(options_on(held()), worker_of(model, master), aborting_hook{&worker_fails});
  const auto loop = [&](auto source) {
    auto steps = worker.steps(source);
    auto step = steps.begin();
    CHECK((*step).global_step == 1);  // the step is complete when the loop receives it
    worker_fails = true;
    ++step;
    CHECK((*step).attempt == 2);
    CHECK_FALSE((*step).rolled_back_from);
    CHECK(model.count == 2);
    chief.run(100);
    chief_fails = true;
    chief.run(101);  // restores step 0, then makes one step
    ++step;
    CHECK((*step).attempt == 2);
    CHECK((*step).global_step == 2);
    CHECK((*step).rolled_back_from == 2);
    CHECK(batches == std::vector<std::int64_t>{1, 2, 100, 101, 3});
  };
  SECTION("one that cannot seek") { loop(batch_source{}); }
  SECTION("one that can") { loop(seekable_batch_source{}); }
}

TEST_CASE("the chief's own source goes back with the model", "[session][master]") {
  sw::test::log_capture log;
  shared_model model;
  bool fails = false;
  sw::monitored_session chief(options_on(held()), chief_of(model, master), aborting_hook{&fails});
  sw::monitored_session worker(options_on(held()), worker_of(model, master));
  std::vector<std::int64_t> batches;
  model.before = [&](std::int64_t batch) { batches.push_back(batch); };
  seekable_batch_source source;
  auto steps = chief.steps(source);
  auto step = steps.begin();
  CHECK((*step).global_step == 1);
  ++step;
  CHECK((*step).global_step == 2);
  worker.run(100);
  fails = true;
  ++step;
  CHECK((*step).global_step == 1);
  CHECK((*step).rolled_back_from == 3);
  CHECK(batches == std::vector<std::int64_t>{1, 2, 100, 1});
}

TEST_CASE("a chief that is closed leaves the model to its workers, and a new one takes it up", "[session][master]") {
  sw::test::log_capture log;
  shared_model model;
  std::optional<sw::monitored_session<sw::model_session<shared_model>>> chief;
  chief.emplace(options_on(held()), chief_of(model, master));
  sw::monitored_session worker(options_on(held()), worker_of(model, master));
  chief->run();
  chief->close();
  CHECK(worker.run().count == 2);
  const sw::monitored_session late(options_on(held()), worker_of(model, master));
  chief.emplace(options_on(held()), chief_of(model, master));  // nothing to restore: the unchanged model, from step 0
  CHECK(chief->global_step() == 0);
  CHECK(worker.run().count == 3);
  CHECK(worker.global_step() == 1);
  CHECK(worker.metrics().recoveries == 1);
}

TEST_CASE("sessions over different models cannot share a master", "[session][master]") {
  shared_model model;
  shared_model other;
  counting_model of_another_type;
  sw::monitored_session chief(options_on(held()), chief_of(model, master));
  CHECK_THROWS_AS(sw::monitored_session(options_on(held()), worker_of(other, master)), sw::invalid_argument_error);
  CHECK_THROWS_AS(sw::monitored_session(options_on(held()), worker_of(of_another_type, master)), sw::invalid_argument_error);
  CHECK(sw::sessions_at(master) == 1);
}

TEST_CASE("steps take turns, and each session sees the values of its own step", "[session][master][threads]") {
  shared_model model;
  sw::monitored_session chief(options_on(held()), chief_of(model, master), looking_hook{});
  constexpr int steps = 300;
  std::atomic<int> messes = 0;
  std::vector<std::jthread> workers;
  for (int i = 0; i < 3; ++i) {
    workers.emplace_back([&] {
      sw::monitored_session worker(options_on(held()), worker_of(model, master), looking_hook{});
      for (int done = 0; done < steps; ++done) { worker.run(); }
      messes += worker.hook<looking_hook>().saw_a_mess;
    });
  }
  for (int done = 0; done < steps; ++done) { chief.run(); }
  workers.clear();
  CHECK(messes == 0);
  CHECK_FALSE(chief.hook<looking_hook>().saw_a_mess);
  CHECK_FALSE(model.was_disturbed);
  CHECK(model.count == 4 * steps);
  CHECK(chief.global_step() == 4 * steps);
}

TEST_CASE("steps of a model that says so are done together", "[session][master][threads]") {
  crowd_model model;
  sw::monitored_session chief(options_on(held()), chief_of(model, master));
  sw::monitored_session worker(options_on(held()), worker_of(model, master));
  {
    const std::jthread beside([&] { worker.run(); });
    chief.run();
  }
  CHECK(model.inside == 2);
  CHECK(chief.global_step() == 2);
}

TEST_CASE("no session steps while the state is copied", "[session][master][threads]") {
  shared_model model;
  sw::monitored_session chief(options_on(held()), chief_of(model, master));
  sw::monitored_session worker(options_on(held()), worker_of(model, master));
  std::jthread beside;
  {
    const auto alone = chief.raw_session().exclusive();
    beside = std::jthread([&] { worker.run(); });
    CHECK(chief.raw_session().variables().size() == 3);
    CHECK(model.count == 0);
    CHECK(chief.raw_session().run().count == 1);  // the holder of the exclusive access may step
  }
  beside.join();
  CHECK(model.count == 2);
}
