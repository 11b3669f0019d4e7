// SPDX-License-Identifier: Apache-2.0
//
// The first training loop. A model is any type with a `step` function and a list of `variables`. You write the loop,
// and the session runs the steps.
#include <stepwell/hooks/logging_tensor_hook.hpp>
#include <stepwell/hooks/stop_hooks.hpp>
#include <stepwell/training/monitored_training_session.hpp>

#include <array>
#include <cstdio>

namespace sw = stepwell;

/// A line y = slope x + offset, fitted to points of y = 3x + 1 by gradient descent.
struct line {
  float slope = 0;
  float offset = 0;

  struct result {
    float loss;
  };

  result step() {
    constexpr std::array xs{-1.0F, -0.5F, 0.0F, 0.5F, 1.0F};
    float loss = 0, slope_gradient = 0, offset_gradient = 0;
    for (const float x : xs) {
      const float error = slope * x + offset - (3 * x + 1);
      loss += error * error / xs.size();
      slope_gradient += 2 * error * x / xs.size();
      offset_gradient += 2 * error / xs.size();
    }
    slope -= 0.2F * slope_gradient;
    offset -= 0.2F * offset_gradient;
    return {loss};
  }

  auto variables() { return sw::variables({{"slope", slope}, {"offset", offset}}); }
};

int main() {
  line model;
  auto session = sw::monitored_training_session(
      model, {}, sw::stop_at_step_hook{{.last_step = 1000}},
      sw::logging_tensor_hook{{.every_n_iter = 20}, sw::tag("loss", &line::result::loss), sw::tag("slope", &line::slope)});

  for (const auto& step : session.steps()) {
    if (step.value.loss < 1e-8F) { session.request_stop("the line is good enough"); }
  }
  session.close();

  std::printf("y = %.3f x + %.3f after %lld steps: %s\n", static_cast<double>(model.slope), static_cast<double>(model.offset),
              static_cast<long long>(session.global_step()), session.stop_reason().text.c_str());
  return session.stop_reason().cause == sw::stop_cause::requested ? 0 : 1;
}
