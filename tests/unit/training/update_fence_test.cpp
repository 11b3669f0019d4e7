// SPDX-License-Identifier: Apache-2.0
#include <stepwell/checkpoint/update_fence.hpp>

#include "support/catch.hpp"
#include "support/fenced_model.hpp"
#include "unit/training/training_rig.hpp"

#include <stepwell/base/error.hpp>
#include <stepwell/model/model_session.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

namespace sw = stepwell;
using namespace sw::test;

namespace {

/// Changes its means before the fence and its weights after it.
struct fenced_model : fenced_values {
  /// Called between the two, before the step waits.
  std::function<void(std::int64_t, sw::update_fence&)> forward = nullptr;
  bool waits = true;

  float step(const std::int64_t& batch, sw::update_fence& fence) {
    update_means(batch);
    if (forward) { forward(batch, fence); }
    if (waits) { fence.wait(); }
    update_weights(batch);
    return weights[0];
  }
};

template<class Session>
void run_all(Session& session) {
  named_source source;
  for ([[maybe_unused]] const auto& step : session.steps(source)) {}
  session.close();
}

template<class Model>
concept has_fence = requires(sw::model_session<Model>& session) { session.fence(); };

struct model_with_template {
  static constexpr bool uses_update_fence = true;
  using result = int;
  std::vector<float> weights = std::vector<float>(many);
  bool was_pending = false;

  int step(const auto& batch, sw::update_fence& fence) {
    was_pending = was_pending || fence.is_pending();
    fence.wait();
    weights[0] += static_cast<float>(batch);
    return 0;
  }
  sw::variable_list variables() { return sw::variables({{"weights", weights}}); }
};

static_assert(has_fence<fenced_model> && has_fence<model_with_template>);
static_assert(!has_fence<adding_model> && !has_fence<counting_model>);

}  // namespace

TEST_CASE("a step computes while the snapshot of its boundary is copied", "[training][fence]") {
  const temporary_directory directory;
  held_pool background;
  fenced_model model;
  std::vector<bool> was_pending;
  model.forward = [&](std::int64_t batch, sw::update_fence& fence) {
    was_pending.push_back(fence.is_pending());
    if (batch == 2) { background.stop(); }
    if (batch == 3) { fence.wait(), background.go(); }  // copies everything itself
  };
  auto session = sw::monitored_training_session(model, options_of(directory, background.pool), sw::stop_at_step_hook{{.last_step = 4}});
  run_all(session);
  CHECK(was_pending == std::vector<bool>{false, false, true, false});
  for (const std::int64_t step : {0, 2, 4}) { CHECK(saved_at(directory, step) == values_after(step)); }
}

TEST_CASE("a step that does not wait at its fence waits at its end", "[training][fence]") {
  const temporary_directory directory;
  held_pool background;
  fenced_model model;
  model.waits = false;
  std::vector<bool> was_pending;
  model.forward = [&](std::int64_t batch, sw::update_fence& fence) {
    was_pending.push_back(fence.is_pending());
    if (batch == 2) { background.stop(); }
    if (batch == 4) { background.go(); }
  };
  auto session = sw::monitored_training_session(model, options_of(directory, background.pool), sw::stop_at_step_hook{{.last_step = 4}});
  run_all(session);
  CHECK(was_pending == std::vector<bool>{false, false, true, false});
  CHECK(model == values_after(4));
}

TEST_CASE("a step that changes a variable before its fence is found in the checking mode", "[training][fence]") {
  const temporary_directory directory;
  held_pool background;
  fenced_model model;
  model.forward = [&](std::int64_t batch, sw::update_fence&) {
    if (batch == 2) { background.stop(); }  // no thread may read the weights while they are changed
    if (batch != 3) { return; }
    model.weights[7] = 0;
    background.go();
  };
  const auto run = [&](std::optional<bool> checks) {
    auto options = options_of(directory, background.pool);
    options.check_update_fence = checks;
    auto session = sw::monitored_training_session(model, options, sw::stop_at_step_hook{{.last_step = 4}});
    run_all(session);
  };
  CHECK_THROWS_WITH(run(true), ContainsSubstring("the variable \"weights\" changed before update_fence::wait() was called"));
  CHECK_NOTHROW(run(false));
}

TEST_CASE("a step that resizes a variable before its fence is found at the first checkpoint, and no thread reads the previous memory",
          "[training][fence]") {
  const temporary_directory directory;
  held_pool background;
  fenced_model model;
  model.forward = [&](std::int64_t batch, sw::update_fence&) {
    if (batch == 3) { model.weights.resize(100 * model.weights.size()); }
  };
  auto options = options_of(directory, background.pool);
  options.check_update_fence = std::nullopt;
  auto session = sw::monitored_training_session(model, options, sw::stop_at_step_hook{{.last_step = 4}});
  CHECK_THROWS_WITH(run_all(session), ContainsSubstring("the variable \"weights\" was resized, replaced or destroyed before"));
}

TEST_CASE("by default, the first checkpoint that is copied during a step is checked, and each 16th one after it", "[training][fence]") {
  const temporary_directory directory;
  held_pool background;
  fenced_model model;
  const auto [bad_batch, is_found] = GENERATE(std::pair(3, true), std::pair(5, false), std::pair(33, false), std::pair(35, true));
  model.forward = [&, bad_batch = bad_batch](std::int64_t batch, sw::update_fence&) {
    if (batch + 1 == bad_batch) { background.stop(); }  // no thread may read the weights while they are changed
    if (batch != bad_batch) { return; }
    model.weights[7] = 0;
    background.go();
  };
  auto options = options_of(directory, background.pool);  // saves every second step
  options.check_update_fence = std::nullopt;
  auto session = sw::monitored_training_session(model, options, sw::stop_at_step_hook{{.last_step = 36}});
  if (is_found) {
    CHECK_THROWS_WITH(run_all(session), ContainsSubstring("the variable \"weights\" changed before update_fence::wait() was called"));
  } else {
    CHECK_NOTHROW(run_all(session));
  }
}

TEST_CASE("a step that fails before its fence is repeated from a whole checkpoint", "[training][fence]") {
  const temporary_directory directory;
  held_pool background;
  fenced_model model;
  bool has_failed = false;
  model.forward = [&](std::int64_t batch, sw::update_fence& fence) {
    if (batch == 2 && !has_failed) { background.stop(); }
    if (batch != 3 || has_failed) { return; }
    CHECK(fence.is_pending());
    has_failed = true;
    background.go();
    throw sw::aborted_error("a device was lost");
  };
  auto session = sw::monitored_training_session(model, options_of(directory, background.pool), sw::stop_at_step_hook{{.last_step = 5}});
  run_all(session);
  CHECK(has_failed);
  CHECK(model == values_after(5));
  for (const std::int64_t step : {2, 4, 5}) { CHECK(saved_at(directory, step) == values_after(step)); }
}

TEST_CASE("a feed to the model waits until the snapshot is copied", "[training][fence]") {
  const temporary_directory directory;
  held_pool background;
  fenced_model model;
  auto session = sw::monitored_training_session(model, options_of(directory, background.pool));
  session.run(std::int64_t{1});
  background.stop();
  session.run(std::int64_t{2});
  bool was_pending = true;
  model.forward = [&](std::int64_t, sw::update_fence& fence) { was_pending = fence.is_pending(); };
  const std::vector<float> others(many, 5.0F);
  session.run(std::int64_t{3}, sw::feed(&fenced_model::means, others));
  CHECK_FALSE(was_pending);
  background.go();
  session.close();
  CHECK(saved_at(directory, 2) == values_after(2));
}

TEST_CASE("a session that is destroyed while a snapshot is copied leaves the model free", "[training][fence]") {
  const temporary_directory directory;
  held_pool background;
  {
    fenced_model model;
    auto options = options_of(directory, background.pool);
    options.stop_grace_period_secs = 0;  // does not wait for the disk
    auto session = sw::monitored_training_session(model, options);
    session.run(std::int64_t{1});
    background.stop();
    session.run(std::int64_t{2});
  }
  background.go();
  background.pool->join();
  CHECK(saved_at(directory, 2) == values_after(2));
}

TEST_CASE("the checkpoint at the close, and one that is asked for, are copied before the call returns", "[training][fence]") {
  const temporary_directory directory;
  held_pool background;
  fenced_model model;
  auto session = sw::monitored_training_session(model, options_of(directory, background.pool));
  session.run(std::int64_t{1});
  session.checkpoint_now();
  model.weights[0] = -1;
  CHECK(saved_at(directory, 1) == values_after(1));
  session.close();
}

TEST_CASE("a step that is a template declares that it uses a fence", "[training][fence]") {
  const temporary_directory directory;
  held_pool background;
  model_with_template model;
  auto session = sw::monitored_training_session(model, options_of(directory, background.pool));
  session.run(1);
  background.stop();
  session.run(2);
  session.run(3);
  CHECK(model.was_pending);
  background.go();
  session.close();
}

TEST_CASE("sessions that share a model copy it at once", "[training][fence]") {
  const temporary_directory directory;
  held_pool background;
  fenced_model model;
  bool was_pending = false;
  model.forward = [&](std::int64_t batch, sw::update_fence& fence) {
    was_pending = was_pending || fence.is_pending();
    if (batch == 2) { background.stop(); }
    if (batch == 3) { background.go(); }
  };
  auto options = options_of(directory, background.pool);
  options.master = "local:fenced";
  auto session = sw::monitored_training_session(model, options, sw::stop_at_step_hook{{.last_step = 4}});
  run_all(session);
  CHECK_FALSE(was_pending);
  CHECK(saved_at(directory, 2) == values_after(2));
}
