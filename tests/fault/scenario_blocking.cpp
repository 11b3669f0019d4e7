// SPDX-License-Identifier: Apache-2.0
#include "fault/scenario_parts.hpp"
#include "fault/scenarios.hpp"

namespace stepwell::test {
namespace {

void train(const std::string& directory) {
  endless_queue batches;
  auto session = monitored_training_session(the_model, options_in(directory, batches), large_summaries(), sigterm_hook{},
                                            time_limit_hook(std::chrono::hours(1)),
                                            profiler_hook({.save_steps = 5, .output_dir = directory + "/profile"}));
  std::int64_t last = 0;
  for (const auto& step : session.steps(batches.queue)) { last = step.global_step; }
  session.close();
  check_last_checkpoint(directory, last);
}

void evaluate(const std::string& directory) {
  const std::vector<std::int64_t> test_set{1, 2, 3};
  for (const auto& prefix : checkpoints_iterator(directory, {.wait = {.timeout = seconds_value(0)}})) {
    evaluate_once(the_model, prefix, data::source(test_set));
  }
}

}  // namespace

void blocking_sessions(const std::string& directory) {
  train(directory);
  train(directory);
  evaluate(directory);
}

}  // namespace stepwell::test
