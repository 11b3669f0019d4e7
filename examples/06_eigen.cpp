// SPDX-License-Identifier: Apache-2.0
//
// Eigen matrices as variables: ridge regression with momentum. A run that is stopped and resumed ends with the same
// bits as a run without a stop.
#include <stepwell/base/random.hpp>
#include <stepwell/eigen/eigen.hpp>
#include <stepwell/hooks/logging_tensor_hook.hpp>
#include <stepwell/hooks/nan_hooks.hpp>
#include <stepwell/hooks/stop_hooks.hpp>
#include <stepwell/training/monitored_training_session.hpp>

#include <Eigen/Dense>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>

namespace sw = stepwell;

/// A linear model targets = inputs * weights.
struct regression {
  using row_major = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  struct result {
    double loss;
    row_major gradient;
  };

  Eigen::MatrixXd inputs, targets;                         // data: not saved, so Eigen's default order is fine
  row_major weights = row_major::Zero(4, 2);               // row-major: saved with shape [4,2]
  Eigen::MatrixXd momentum = Eigen::MatrixXd::Zero(4, 2);  // column-major: saved as the transposed [2,4]

  regression() {
    sw::random_stream random{1};
    inputs = Eigen::MatrixXd::NullaryExpr(32, 4, [&] { return 2 * random.uniform() - 1; });
    Eigen::MatrixXd truth(4, 2);
    truth << 1, -1, 2, 0.5, -3, 0.25, 4, 8;
    targets = inputs * truth;
  }

  result step() {
    const Eigen::MatrixXd error = inputs * weights - targets;
    const row_major gradient = inputs.transpose() * error / 32 + 1e-6 * weights;
    momentum = 0.9 * momentum + gradient;
    weights -= 0.1 * momentum;
    return {error.squaredNorm() / 32, gradient};
  }
  auto variables() { return sw::variables({{"weights", weights}, {"momentum", sw::eigen::column_major_as_transposed(momentum)}}); }
};

regression::row_major train(const std::string& directory, std::int64_t last_step) {
  regression model;
  auto session = sw::monitored_training_session(
      model, {.checkpoint_dir = directory, .saves = {.save_steps = 50}}, sw::stop_at_step_hook{{.last_step = last_step}},
      sw::nan_tensor_hook{&regression::result::gradient},
      sw::logging_tensor_hook{{.every_n_iter = 100}, sw::tag("norm", [](const regression& model) { return model.weights.norm(); })});
  double loss = 0;
  for (const auto& step : session.steps()) { loss = step.value.loss; }
  session.close();
  std::printf("%s: step %lld, loss %.2e\n", directory.c_str(), static_cast<long long>(session.global_step()), loss);
  return model.weights;
}

int main() {
  const auto whole = train("whole", 300);
  train("parts", 123);
  const auto parts = train("parts", 300);
  return whole == parts && std::abs(whole(3, 1) - 8) < 0.1 ? 0 : 1;
}
