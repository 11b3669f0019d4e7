// SPDX-License-Identifier: Apache-2.0
//
// A model in xtensor: linear regression by gradient descent on random batches. Containers, views and the engine of xt::random are variables,
// and expressions are written as histograms. A run that is stopped and resumed ends with the same bits as a run without a stop.
#include <stepwell/hooks/logging_tensor_hook.hpp>
#include <stepwell/hooks/nan_hooks.hpp>
#include <stepwell/hooks/stop_hooks.hpp>
#include <stepwell/hooks/summary_saver_hook.hpp>
#include <stepwell/training/monitored_training_session.hpp>
#include <stepwell/xtensor/xtensor.hpp>

#if __has_include(<xtensor/core/xmath.hpp>)  // since xtensor 0.26
#include <xtensor/core/xmath.hpp>
#include <xtensor/core/xnoalias.hpp>
#include <xtensor/generators/xrandom.hpp>
#else
#include <xtensor/xmath.hpp>
#include <xtensor/xnoalias.hpp>
#include <xtensor/xrandom.hpp>
#endif

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <random>
#include <string>

namespace sw = stepwell;

/// A linear model: the targets are the sums of the inputs, weighted.
struct regression {
  using vector = xt::xtensor<double, 1>;
  using matrix = xt::xtensor<double, 2>;
  struct result {
    double loss;
    double rate;
    vector gradient;
  };

  matrix inputs;  // data: not saved
  vector targets;
  matrix state = xt::zeros<double>({4, 2});  // the weights and, beside them, their momentum
  std::mt19937 engine{1};

  regression() {
    std::mt19937 of_data{7};
    inputs = xt::random::rand<double>({256, 4}, -1, 1, of_data);
    targets = xt::sum(inputs * vector{1, 2, -3, 8}, {1});
  }

  result step() {
    const xt::xtensor<std::ptrdiff_t, 1> rows = xt::random::randint<std::ptrdiff_t>({32}, 0, 256, engine);
    const matrix batch = xt::view(inputs, xt::keep(rows), xt::all());
    auto weights = xt::view(state, xt::all(), 0);
    auto momentum = xt::view(state, xt::all(), 1);
    const vector error = xt::sum(batch * weights, {1}) - xt::view(targets, xt::keep(rows));
    const vector gradient = xt::mean(batch * xt::view(error, xt::all(), xt::newaxis()), {0});
    const double rate = 0.2;
    xt::noalias(momentum) = 0.9 * momentum + gradient;
    xt::noalias(weights) -= rate * momentum;
    return {xt::mean(error * error)(), rate, gradient};
  }
  auto variables() {
    return sw::variables({{"weights", xt::view(state, xt::all(), 0)}, {"momentum", xt::view(state, xt::all(), 1)}, {"engine", engine}});
  }
};

regression::matrix train(const std::string& directory, std::int64_t last_step) {
  regression model;
  auto session = sw::monitored_training_session(
      model, {.checkpoint_dir = directory, .saves = {.save_steps = 50}}, sw::stop_at_step_hook{{.last_step = last_step}},
      sw::nan_tensor_hook{&regression::result::gradient},
      sw::summary_saver_hook{{.save_steps = 10},
                             sw::summary::scalar("loss", &regression::result::loss),
                             sw::summary::histogram("update", [](const regression::result& r) { return r.rate * r.gradient; }),
                             sw::summary::histogram("weights", [](const regression& m) { return xt::view(m.state, xt::all(), 0); })},
      sw::logging_tensor_hook{{.every_n_iter = 100},
                              sw::tag("weights", [](const regression& m) { return xt::view(m.state, xt::all(), 0); })});
  double loss = 0;
  for (const auto& step : session.steps()) { loss = step.value.loss; }
  session.close();
  std::printf("%s: step %lld, loss %.2e\n", directory.c_str(), static_cast<long long>(session.global_step()), loss);
  return model.state;
}

int main() {
  const auto whole = train("whole", 300);
  train("parts", 123);
  const auto parts = train("parts", 300);
  return whole == parts && std::abs(whole(3, 0) - 8) < 0.1 ? 0 : 1;
}
