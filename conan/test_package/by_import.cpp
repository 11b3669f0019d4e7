// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <vector>

import stepwell;

struct counter {
  int steps = 0;

  int step() { return ++steps; }
  auto variables() { return stepwell::variables({{"steps", steps}}); }
};

int main() {
  counter model;
  auto session = stepwell::monitored_training_session(model, {}, stepwell::stop_at_step_hook{{.last_step = 10}});
  for (const auto& step : session.steps()) { std::printf("%d\n", step.value); }
  session.close();
  return model.steps == 10 ? 0 : 1;
}
