// SPDX-License-Identifier: Apache-2.0
//
// Tests of snapshots that a blocking session returns: their content, the calls that are rejected, and the restore into
// a model.
#include "support/catch.hpp"
#include "support/log_capture.hpp"
#include "support/recovery_rig.hpp"
#include "support/shared_model.hpp"

#include <stepwell/checkpoint/checkpoint_reader.hpp>
#include <stepwell/checkpoint/detail/stored_checkpoint.hpp>
#include <stepwell/model/model.hpp>
#include <stepwell/session/monitored_session.hpp>

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace sw = stepwell;
using namespace sw::test;

namespace {

std::set<std::string> names_in(const sw::snapshot& taken) {
  std::set<std::string> names;
  for (const auto& entry : taken.entries()) { names.emplace(entry.name); }
  return names;
}
std::set<std::string> names_in(const sw::checkpoint_reader& reader) {
  std::set<std::string> names;
  for (const auto& entry : reader.entries()) {
    if (!entry.is_object_graph && !sw::detail::is_saver_note(entry.name)) { names.emplace(entry.name); }
  }
  return names;
}

/// A model that counts its own steps.
struct own_count_model {
  std::int64_t count = 0;
  float weight = 0;

  void step() { ++count, weight += 2; }
  std::int64_t& global_step() { return count; }
  sw::variable_list variables() { return sw::variables({{"weight", weight}}); }
};
struct other_shape_model {
  std::vector<float> weights = {7, 7};
  float sum = 7;
  sw::variable_list variables() { return sw::variables({{"sum", sum}, {"weights", weights}}); }
};
struct other_names_model {
  float total = 7;
  sw::variable_list variables() { return sw::variables({{"total", total}}); }
};

struct rejects_hook {
  bool* is_bad;
  void after_run(auto& context, const auto&) const {
    if (*is_bad) { context.reject_state("it looks wrong"); }
  }
};

static_assert(sw::restorable_model<own_count_model> && sw::restorable_model<other_names_model>);
static_assert(!sw::restorable_model<int> && !sw::restorable_model<sw::variable_list>);

}  // namespace

TEST_CASE("a snapshot of a session holds what a checkpoint of that step would, whatever comes later", "[session][snapshot]") {
  recovery_rig rig;
  auto session = rig.start_saving_every(2);
  counting_source source;
  for (const auto& step : session.steps(source)) {
    if (step.global_step == 4) { break; }
  }
  const auto taken = session.snapshot();
  wait_for_saves(session);
  CHECK(taken.step() == 4);
  CHECK(names_in(taken) == names_in(*sw::latest_whole_checkpoint(rig.directory.path())));
  run_until(session, 6);
  adding_model another;
  CHECK(sw::restore(another, taken).restored == std::vector<std::string>{"sum", "weights"});
  CHECK(same(another, model_after(4)));
  CHECK(same(rig.model, model_after(6)));
}

TEST_CASE("snapshots of a pool use its buffers again, and wait until one is free", "[session][snapshot]") {
  adding_model model;
  sw::monitored_session session(at_once(), model);
  sw::snapshot_pool pool(256, 1);
  const auto address_of = [](const sw::snapshot& taken) { return taken.entries().front().bytes.data(); };
  auto first = std::optional(session.snapshot(pool));
  const auto* memory = address_of(*first);
  CHECK(pool.available() == 0);
  std::thread returns([&] { first.reset(); });
  const auto second = session.snapshot(pool);
  returns.join();
  CHECK(address_of(second) == memory);
}

TEST_CASE("a state that is bad, or half a step, is not given as a snapshot", "[session][snapshot]") {
  log_capture log;
  adding_model model;
  bool is_bad = false;
  sw::monitored_session session(at_once(), model, rejects_hook{&is_bad});
  session.run(std::int64_t{1});
  model.before = failing<sw::internal_error>(1);
  CHECK_THROWS_AS(session.run(std::int64_t{2}), sw::internal_error);
  CHECK_THROWS_WITH(session.snapshot(), ContainsSubstring("the last step failed midway"));
  session.run(std::int64_t{2});
  CHECK(session.snapshot().step() == 2);
  is_bad = true;
  session.run(std::int64_t{3});
  CHECK_THROWS_WITH(session.snapshot(), ContainsSubstring("it looks wrong"));
  CHECK_THROWS_AS(session.snapshot(), sw::failed_precondition_error);
  session.close();
  CHECK_THROWS_WITH(session.snapshot(), ContainsSubstring("closed"));
  sw::snapshot_pool pool(16, 1);
  CHECK_THROWS_AS(session.snapshot(pool), sw::failed_precondition_error);
  CHECK(pool.available() == 1);
}

TEST_CASE("after a recovery, a failed source, a stop, or the end of the data there is a snapshot as before", "[session][snapshot]") {
  log_capture log;
  recovery_rig rig;
  auto session = rig.start_saving_every(2);
  run_until(session, 3);
  rig.model.before = failing<sw::aborted_error>(1);
  session.run(std::int64_t{4});
  CHECK(session.metrics().recoveries == 1);
  CHECK(session.snapshot().step() == 3);  // the recovery went back to step 2
  rig.model.before = nullptr;
  struct failing_source : counting_source {
    const std::int64_t* peek() { throw sw::internal_error("the source is broken"); }
  } broken;
  CHECK_THROWS_AS(
      [&] {
        for ([[maybe_unused]] const auto& step : session.steps(broken)) {}
      }(),
      sw::internal_error);
  CHECK(session.snapshot().step() == 3);
  for ([[maybe_unused]] const auto& step : session.steps(std::vector<std::int64_t>{1, 2})) {}
  CHECK(session.snapshot().step() == 5);
  session.request_stop();
  CHECK(session.snapshot().step() == 5);
}

TEST_CASE("a session that never recovers gives snapshots, too", "[session][snapshot]") {
  adding_model model;
  sw::singular_monitored_session session(at_once(), model);
  session.run(std::int64_t{1});
  CHECK(session.snapshot().step() == 1);
}

TEST_CASE("a snapshot of a shared model is taken between the steps of all its sessions", "[session][snapshot]") {
  log_capture log;
  shared_model model;
  const auto clock = std::make_shared<sw::manual_clock>();
  sw::monitored_session chief(options_on(clock), chief_of(model, "local:snapshots"));
  sw::monitored_session worker(options_on(clock), worker_of(model, "local:snapshots"));
  std::jthread steps([&] {
    for (int i = 0; i < 300; ++i) { worker.run(); }
  });
  for (int i = 0; i < 30; ++i) {
    shared_model seen;
    const auto taken = chief.snapshot();
    sw::restore(seen, taken);
    CHECK(seen.is_whole());
    CHECK(taken.step() == seen.count);
  }
}

TEST_CASE("CKPT-9 a snapshot that does not fit a model is refused by name, shape and dtype, and nothing is written",
          "[session][snapshot]") {
  adding_model model;
  sw::monitored_session session(at_once(), model);
  session.run(std::int64_t{1});
  const auto taken = session.snapshot();
  other_shape_model shapes;
  CHECK_THROWS_AS(sw::restore(shapes, taken), sw::invalid_argument_error);
  CHECK_THROWS_WITH(sw::restore(shapes, taken), ContainsSubstring("weights: checkpoint has float32 [3], model has float32 [2]"));
  CHECK(shapes.sum == 7);
  other_names_model names;
  CHECK_THROWS_AS(sw::restore(names, taken), sw::not_found_error);
  CHECK(names.total == 7);
  sw::restore(names, taken, {.names = {{"total", "sum"}}});
  CHECK(names.total == 1);
}

TEST_CASE("a model that counts its steps itself has the count of the snapshot once it is restored", "[session][snapshot]") {
  own_count_model model;
  sw::monitored_session session(at_once(), model);
  for (int i = 0; i < 3; ++i) { session.run(); }
  own_count_model another;
  sw::restore(another, session.snapshot());
  CHECK(another.count == 3);
  CHECK(another.weight == 6);
}
