// SPDX-License-Identifier: Apache-2.0
//
// Checkpoints: a run that is stopped and resumed ends with the same bits as a run without a stop. This needs a
// checkpoint directory and a variable list that contains the complete state.
#include <stepwell/base/random.hpp>
#include <stepwell/hooks/stop_hooks.hpp>
#include <stepwell/training/monitored_training_session.hpp>

#include <cstdio>
#include <string>

namespace sw = stepwell;

/// An estimate of pi by throwing darts, with momentum. Each state depends on all previous states.
struct darts {
  double estimate = 0;
  double momentum = 0;
  sw::random_stream random{42};

  void step() {
    const double x = random.uniform(), y = random.uniform();
    const double seen = x * x + y * y < 1 ? 4 : 0;
    momentum = 0.9 * momentum + 0.0005 * (seen - estimate);
    estimate += momentum;
  }

  auto variables() {
    auto drawn = random.state();  // the position of the random stream is part of the state
    return sw::variables({{"estimate", estimate}, {"momentum", momentum}, {"random", drawn}});
  }
};

/// Trains in `directory` up to `last_step`, from the newest checkpoint if there is one.
double train(const std::string& directory, std::int64_t last_step) {
  darts model;
  auto session = sw::monitored_training_session(
      model, {.checkpoint_dir = directory, .saves = {.save_steps = 1000}, .step_counter = {.every_n_steps = sw::none}},
      sw::stop_at_step_hook{{.last_step = last_step}});
  const auto first = session.global_step();
  for ([[maybe_unused]] const auto& step : session.steps()) {}
  session.close();  // also saves the last step
  std::printf("%s: from step %lld to %lld, pi is %.6f\n", directory.c_str(), static_cast<long long>(first),
              static_cast<long long>(session.global_step()), model.estimate);
  return model.estimate;
}

int main() {
  const double whole = train("whole", 20'000);
  train("parts", 7'777);
  train("parts", 7'777);  // starts at the last step and does nothing
  const double parts = train("parts", 20'000);
  return whole == parts ? 0 : 1;
}
