// SPDX-License-Identifier: Apache-2.0
//
// Tests of behaviour that all hooks share, alone and combined.
#include "support/catch.hpp"
#include "support/log_capture.hpp"
#include "support/temporary_directory.hpp"
#include "unit/hooks/event_reading.hpp"

#include <stepwell/checkpoint/find_checkpoints.hpp>
#include <stepwell/hooks/checkpoint_saver_hook.hpp>
#include <stepwell/hooks/nan_hooks.hpp>
#include <stepwell/hooks/step_counter_hook.hpp>
#include <stepwell/hooks/stop_hooks.hpp>
#include <stepwell/hooks/summary_saver_hook.hpp>
#include <stepwell/model/model_session.hpp>
#include <stepwell/session/training_session.hpp>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

namespace sw = stepwell;
using namespace std::chrono_literals;
using sw::test::temporary_directory;
using steps = std::vector<std::int64_t>;

namespace {

/// A model that makes several steps in one run and counts the runs.
struct striding_model {
  using result = float;
  std::int64_t steps = 0;
  std::int64_t stride = 3;
  int runs = 0;
  float step() {
    steps += stride;
    return static_cast<float>(++runs);
  }
  std::int64_t& global_step() { return steps; }
  sw::variable_list variables() { return sw::variables({{"stride", stride}}); }
};

/// A model that ends in its third step, in the given way.
struct ending_model {
  bool is_out_of_data = true;
  int count = 0;
  void step() {
    if (++count < 3) { return; }
    if (is_out_of_data) { throw sw::out_of_range_error("no more"); }
    throw sw::stop_iteration("enough");
  }
  sw::variable_list variables() { return sw::variables({{"count", count}}); }
};

struct recording_hook {
  std::string& story;
  void before_run(auto&) { story += "before "; }
  void after_run(auto&, const auto&) { story += "after "; }
  void end(auto&) { story += "end "; }
};

steps steps_of(const std::map<std::int64_t, float>& scalars) {
  steps all;
  for (const auto& [step, value] : scalars) { all.push_back(step); }
  return all;
}

}  // namespace

TEST_CASE("HOOK-2 the end of the data, or of the iteration, skips after_run and ends the hooks", "[hooks]") {
  ending_model model{.is_out_of_data = GENERATE(true, false)};
  std::string story;
  sw::monitored_session session(model, recording_hook{story});
  CHECK_NOTHROW(sw::with(session, [](auto& inner) {
    for (;;) { inner.run(); }
  }));
  CHECK(story == "before after before after before end ");
  CHECK(session.global_step() == 2);
}

TEST_CASE("D-14 hooks learn the step from the run itself: none makes a run of its own, or is off by one", "[hooks]") {
  const temporary_directory directory;
  sw::test::log_capture log;
  const auto clock = std::make_shared<sw::manual_clock>();
  striding_model model;
  sw::monitored_session session(sw::training_options{.clock = clock}, model, sw::stop_at_step_hook{{.last_step = 10}},
                                sw::nan_tensor_hook{[](float value) { return value; }}, sw::step_counter_hook{{.every_n_steps = 1}},
                                sw::summary_saver_hook{sw::summary_saver_options{.output_dir = directory.path(), .save_steps = 2},
                                                       sw::summary::scalar("runs", [](float value) { return value; })},
                                sw::checkpoint_saver_hook{{.checkpoint_dir = directory.path(), .save_steps = 4}});
  while (!session.should_stop()) {
    session.run();
    clock->advance(1s);
  }
  session.close();
  CHECK(model.runs == 4);
  CHECK(model.steps == 12);
  steps saved;
  for (const auto& prefix : sw::list_checkpoints(directory.path())) { saved.push_back(*sw::step_of_checkpoint(prefix)); }
  CHECK(saved == steps{0, 6, 12});  // each is the first step at least four after the previous one
  CHECK(steps_of(sw::test::scalars_in(directory.path(), "runs")) == steps{3, 9});  // decided before the run: step + 1 counts
  CHECK(log.count(sw::log_level::warning) == 0);
}

TEST_CASE("HOOK-NAN-3 the value is checked in every run, independently of the caller's fetches", "[hooks]") {
  striding_model model;
  int looked = 0;
  sw::monitored_session session(model, sw::nan_tensor_hook{[&](float value) {
                                  ++looked;
                                  return value;
                                }});
  session.run();
  CHECK(session.run(sw::fetch([](const striding_model& m) { return m.runs; })) == std::tuple(2));
  CHECK(looked == 2);
  session.raw_session().run(std::tuple());
  CHECK(looked == 2);  // hooks do not see this run
}
