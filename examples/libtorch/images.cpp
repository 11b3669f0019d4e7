// SPDX-License-Identifier: Apache-2.0
//
// libtorch_images [RUN_DIR [LAST_STEP [KILLED_AT]]]
// Two networks that train against each other, as in DCGAN: one makes images of discs from noise, the other tells them from drawn discs. Each has an
// optimiser of its own. A summary shows images for a fixed noise, without an effect on the training. The last argument kills the run after that
// step.
#include <stepwell/checkpoint/snapshot.hpp>
#include <stepwell/hooks/stop_hooks.hpp>
#include <stepwell/hooks/summary_saver_hook.hpp>
#include <stepwell/torch/evaluating.hpp>
#include <stepwell/torch/torch.hpp>
#include <stepwell/training/monitored_training_session.hpp>

#include <torch/torch.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <string>

namespace sw = stepwell;
namespace nn = torch::nn;

namespace {

constexpr std::int64_t batch_size = 16, noise_size = 8, side = 16;

/// Returns images of discs at random places, from -1 to 1.
torch::Tensor drawn_discs() {
  const auto line = torch::arange(side, torch::kFloat);
  const auto x = torch::rand({batch_size, 1, 1, 1}) * 8 + 4;
  const auto y = torch::rand({batch_size, 1, 1, 1}) * 8 + 4;
  const auto distance = (line.view({1, 1, 1, side}) - x).square() + (line.view({1, 1, side, 1}) - y).square();
  return torch::tanh(9 - distance);
}

nn::Sequential make_generator() {
  return nn::Sequential(nn::ConvTranspose2d(nn::ConvTranspose2dOptions(noise_size, 16, 4).bias(false)), nn::BatchNorm2d(16), nn::ReLU(),
                        nn::ConvTranspose2d(nn::ConvTranspose2dOptions(16, 8, 4).stride(2).padding(1).bias(false)), nn::BatchNorm2d(8),
                        nn::ReLU(), nn::ConvTranspose2d(nn::ConvTranspose2dOptions(8, 1, 4).stride(2).padding(1)), nn::Tanh());
}

nn::Sequential make_judge() {
  return nn::Sequential(nn::Conv2d(nn::Conv2dOptions(1, 8, 4).stride(2).padding(1)),
                        nn::LeakyReLU(nn::LeakyReLUOptions().negative_slope(0.2)),
                        nn::Conv2d(nn::Conv2dOptions(8, 16, 4).stride(2).padding(1).bias(false)), nn::BatchNorm2d(16),
                        nn::LeakyReLU(nn::LeakyReLUOptions().negative_slope(0.2)), nn::Conv2d(16, 1, 4), nn::Sigmoid());
}

struct trainee {
  struct result {
    torch::Tensor judge_loss, generator_loss;
  };

  nn::Sequential generator = make_generator(), judge = make_judge();
  torch::optim::Adam generator_optimizer{generator->parameters(), torch::optim::AdamOptions(2e-3).betas({0.5, 0.999})};
  torch::optim::Adam judge_optimizer{judge->parameters(), torch::optim::AdamOptions(2e-3).betas({0.5, 0.999})};

  result step() {
    judge->zero_grad();
    const auto real = judge->forward(drawn_discs()).flatten();
    const auto made = generator->forward(torch::randn({batch_size, noise_size, 1, 1}));
    const auto judge_loss = torch::binary_cross_entropy(real, torch::full_like(real, 0.9)) +
                            torch::binary_cross_entropy(judge->forward(made.detach()).flatten(), torch::zeros_like(real));
    judge_loss.backward();
    judge_optimizer.step();

    generator->zero_grad();
    const auto generator_loss = torch::binary_cross_entropy(judge->forward(made).flatten(), torch::ones_like(real));
    generator_loss.backward();
    generator_optimizer.step();
    return {judge_loss.detach(), generator_loss.detach()};
  }
  auto variables() {
    return sw::variables({{"generator", sw::libtorch::variables(*generator)},
                          {"judge", sw::libtorch::variables(*judge)},
                          {"generator_adam", sw::libtorch::variables(generator_optimizer, *generator)},
                          {"judge_adam", sw::libtorch::variables(judge_optimizer, *judge)},
                          {"rng", sw::libtorch::rng()}});
  }
};

}  // namespace

int main(int count, char** arguments) {
  const std::string run_dir = count > 1 ? arguments[1] : "images-run";
  const std::int64_t last_step = count > 2 ? std::stoll(arguments[2]) : 300;
  const std::int64_t killed_at = count > 3 ? std::stoll(arguments[3]) : -1;

  torch::set_num_threads(1);  // a fixed order of summation
  torch::manual_seed(1);
  trainee model;
  const auto noise = torch::randn({4, noise_size, 1, 1});
  const auto samples = [noise](const trainee& now) {
    const sw::libtorch::evaluating guard(*now.generator);
    return now.generator.ptr()->forward<torch::Tensor>(noise);
  };
  auto session = sw::monitored_training_session(
      model, {.checkpoint_dir = run_dir, .saves = {.save_steps = 5}, .summaries = {.save_steps = 10, .check_variables = true}},
      sw::stop_at_step_hook{{.last_step = last_step}},
      sw::summaries(sw::summary::scalar("loss/judge", &trainee::result::judge_loss),
                    sw::summary::scalar("loss/generator", &trainee::result::generator_loss),
                    sw::summary::image("samples", samples, {.max_outputs = 4, .layout = sw::summary::image_layout::nchw, .black = -1})));
  for (const auto& step : session.steps()) {
    if (step.global_step == killed_at) { std::raise(SIGKILL); }
  }
  session.close();
  std::printf("step %lld, checksum %08x\n", static_cast<long long>(session.global_step()), sw::checksum(model.variables()));
}
