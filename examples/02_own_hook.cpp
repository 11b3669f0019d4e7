// SPDX-License-Identifier: Apache-2.0
//
// A hook of your own: any type with at least one of the hook points. A point that the hook does not have costs nothing.
// A point with a wrong signature does not compile.
#include <stepwell/hooks/stop_hooks.hpp>
#include <stepwell/training/monitored_training_session.hpp>

#include <cstdio>

namespace sw = stepwell;

/// A model that minimises (x - 2)^2 by gradient descent. Its initial step size is too large; a hook reduces it.
struct valley {
  float x = 10;
  float rate = 1.01F;

  struct result {
    float height;
  };

  result step() {
    const float height = (x - 2) * (x - 2);
    x -= rate * 2 * (x - 2);
    return {height};
  }
  auto variables() { return sw::variables({{"x", x}, {"rate", rate}}); }
};

/// A hook that halves the learning rate every 10 steps. It reads only the global step.
struct learning_rate_decay {
  float& rate;

  void after_run(auto& context, const auto& /*values*/) {
    if (context.global_step() % 10 == 0) { rate *= 0.5F; }
  }
};

/// A hook that stops the training at the minimum. `before_run` requests a value of each run, and `after_run` receives
/// it.
struct stop_in_the_valley {
  auto before_run(auto& /*context*/) { return sw::fetch(&valley::result::height); }

  void after_run(auto& context, const auto& values) {
    if (values.value() < 1e-6F) { context.request_stop("x is close to the minimum"); }
  }

  void end(auto& session) { std::printf("ended at step %lld\n", static_cast<long long>(session.global_step())); }
};

int main() {
  valley model;
  auto session = sw::monitored_training_session(model, {}, learning_rate_decay{model.rate}, stop_in_the_valley{},
                                                sw::stop_at_step_hook{{.last_step = 1000}});
  while (!session.should_stop()) { session.run(); }
  session.close();
  std::printf("x = %.4f: %s\n", static_cast<double>(model.x), session.stop_reason().text.c_str());
  return session.stop_reason().cause == sw::stop_cause::requested ? 0 : 1;
}
