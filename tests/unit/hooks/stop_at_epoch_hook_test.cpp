// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"
#include "support/toy_model.hpp"

#include <stepwell/base/error.hpp>
#include <stepwell/data/shuffled_batches.hpp>
#include <stepwell/hooks/stop_hooks.hpp>
#include <stepwell/model/model_session.hpp>

#include <cstdint>
#include <vector>

namespace sw = stepwell;

namespace {

struct batch_model {
  std::int64_t batches = 0;
  void step(const std::vector<int>&) { ++batches; }
  sw::variable_list variables() { return sw::variables({{"batches", batches}}); }
};

}  // namespace

TEST_CASE("the loop ends after the last batch of the last epoch", "[hooks][stop_at_epoch]") {
  batch_model model;
  sw::monitored_session session(model, sw::stop_at_epoch(2));
  auto batches = sw::data::shuffled_batches(std::vector<int>(10, 1), {.batch_size = 3});
  for ([[maybe_unused]] const auto& step : session.steps(batches)) {}
  CHECK(model.batches == 8);
  CHECK(batches.position() == 20);
  CHECK(session.stop_reason().cause == sw::stop_cause::last_step);
  CHECK(session.stop_reason().text == "epoch 2 is done");
  CHECK(session.hook<sw::stop_at_epoch_hook>().epochs_done() == 2);
}

TEST_CASE("a session that stops at epoch 0 does no step", "[hooks][stop_at_epoch]") {
  batch_model model;
  sw::monitored_session session(model, sw::stop_at_epoch(0));
  CHECK(session.should_stop());
}

TEST_CASE("epochs that make no sense are refused by name", "[hooks][stop_at_epoch]") {
  CHECK_THROWS_WITH(sw::stop_at_epoch(-1), ContainsSubstring("last_epoch is -1"));
  CHECK_THROWS_WITH(sw::stop_at_epoch_hook{{}}, ContainsSubstring("last_epoch must be specified"));
  CHECK_THROWS_WITH((sw::stop_at_epoch_hook{{.last_epoch = 1, .name = ""}}), ContainsSubstring("name is empty"));
}
