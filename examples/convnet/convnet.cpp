// SPDX-License-Identifier: Apache-2.0
//
// convnet [RUN_DIR [LAST_STEP [KILLED_AT]]]
// Trains a LibTorch network on drawn digits. A run that is killed at any step and resumed ends with the same bits as an
// undisturbed run, because the checkpoint holds the parameters, Adam's averages and the position in the data. The third
// argument kills the run after that step, to show this.
#include "convnet.hpp"
#include "fingerprint.hpp"

#include <stepwell/data/shuffled_batches.hpp>
#include <stepwell/hooks/logging_tensor_hook.hpp>
#include <stepwell/hooks/nan_hooks.hpp>
#include <stepwell/hooks/stop_hooks.hpp>
#include <stepwell/hooks/summary_saver_hook.hpp>
#include <stepwell/training/monitored_training_session.hpp>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <string>

namespace sw = stepwell;

int main(int count, char** arguments) {
  const std::string run_dir = count > 1 ? arguments[1] : "convnet-run";
  const std::int64_t last_step = count > 2 ? std::stoll(arguments[2]) : 150;
  const std::int64_t killed_at = count > 3 ? std::stoll(arguments[3]) : -1;

  torch::set_num_threads(1);  // a fixed order of summation
  torch::manual_seed(1);      // the initial weights
  const convnet::drawings to_learn(1, 2000), to_test(2, 500);
  convnet::trainee_with_fence model;
  auto batches = sw::data::shuffled_batches(to_learn, {.batch_size = 32, .seed = 3});

  auto session = sw::monitored_training_session(
      model, {.checkpoint_dir = run_dir, .saves = {.save_steps = 20}}, sw::stop_at_step_hook{{.last_step = last_step}},
      sw::nan_tensor_hook{&convnet::trainee::result::scores},
      sw::logging_tensor_hook{{.every_n_iter = 50}, sw::tag("loss", &convnet::trainee::result::loss)},
      sw::summary_saver_hook{
          {.output_dir = run_dir, .save_steps = 50},
          sw::summary::scalar("loss", &convnet::trainee::result::loss),
          sw::summary::histogram("scores/weight", [](const convnet::trainee& now) { return now.network.scores->weight; })});
  for ([[maybe_unused]] const auto& step : session.steps(batches)) {
    if (session.global_step() == killed_at) { std::raise(SIGKILL); }
  }
  session.close();
  std::printf("step %lld, %.1f %% of new digits right, %s\n", static_cast<long long>(session.global_step()),
              100 * model.accuracy(to_test.all()), digits::fingerprint(model.variables()).c_str());
}
