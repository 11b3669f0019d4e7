// SPDX-License-Identifier: Apache-2.0
//
// libtorch_digits [RUN_DIR [LAST_STEP [KILLED_AT]]]
// The usual first program of LibTorch, on drawn digits: a convolutional network with dropout, a dataset with transforms, SGD with momentum, and a
// learning rate that is reduced step by step. The last argument kills the run after that step.
#include "render.hpp"

#include <stepwell/checkpoint/snapshot.hpp>
#include <stepwell/data/prefetch.hpp>
#include <stepwell/hooks/stop_hooks.hpp>
#include <stepwell/hooks/summary_saver_hook.hpp>
#include <stepwell/schedules/schedules.hpp>
#include <stepwell/torch/examples.hpp>
#include <stepwell/torch/schedule.hpp>
#include <stepwell/torch/torch.hpp>
#include <stepwell/training/monitored_training_session.hpp>

#include <torch/torch.h>

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>

namespace sw = stepwell;

namespace {

struct network : torch::nn::Module {
  torch::nn::Conv2d narrow = register_module("narrow", torch::nn::Conv2d(1, 6, 5));
  torch::nn::Conv2d wide = register_module("wide", torch::nn::Conv2d(6, 12, 5));
  torch::nn::Dropout dropout = register_module("dropout", torch::nn::Dropout(0.5));
  torch::nn::Linear scores = register_module("scores", torch::nn::Linear(12 * 4 * 4, 10));

  torch::Tensor forward(const torch::Tensor& images) {
    auto seen = torch::relu(torch::max_pool2d(narrow(images), 2));
    seen = torch::relu(torch::max_pool2d(wide(seen), 2));
    return torch::log_softmax(scores(dropout(seen.flatten(1))), 1);
  }
};

struct drawings : torch::data::datasets::Dataset<drawings> {
  torch::data::Example<> get(std::size_t index) override {
    const auto drawn = digits::render(1, index);
    auto image = torch::empty({1, 28, 28});
    auto* pixels = image.data_ptr<float>();
    for (const auto pixel : drawn.pixels) { *pixels++ = static_cast<float>(pixel) / 255; }
    return {image, torch::tensor(static_cast<std::int64_t>(drawn.digit))};
  }
  [[nodiscard]] decltype(std::declval<torch::data::datasets::MNIST>().size()) size() const override { return 2000; }
};

struct trainee {
  struct result {
    torch::Tensor loss;
  };

  std::shared_ptr<network> net = std::make_shared<network>();
  torch::optim::SGD optimizer{net->parameters(), torch::optim::SGDOptions(0.1).momentum(0.5)};

  result step(const torch::data::Example<>& batch) {
    optimizer.zero_grad();
    const auto loss = torch::nll_loss(net->forward(batch.data), batch.target);
    loss.backward();
    optimizer.step();
    return {loss.detach()};
  }
  auto variables() {
    return sw::variables(
        {{"net", sw::libtorch::variables(*net)}, {"sgd", sw::libtorch::variables(optimizer, *net)}, {"rng", sw::libtorch::rng()}});
  }
};

}  // namespace

int main(int count, char** arguments) {
  const std::string run_dir = count > 1 ? arguments[1] : "digits-run";
  const std::int64_t last_step = count > 2 ? std::stoll(arguments[2]) : 300;
  const std::int64_t killed_at = count > 3 ? std::stoll(arguments[3]) : -1;

  torch::set_num_threads(1);  // a fixed order of summation
  torch::manual_seed(1);
  trainee model;
  auto dataset = drawings().map(torch::data::transforms::Normalize<>(0.13, 0.31)).map(torch::data::transforms::Stack<>());
  auto batches = sw::data::prefetch(sw::data::shuffled_batches(sw::libtorch::examples(std::move(dataset)), {.batch_size = 32, .seed = 3}));

  auto session = sw::monitored_training_session(
      model, {.checkpoint_dir = run_dir, .saves = {.save_steps = 5}, .summaries = {.save_steps = 10}},
      sw::stop_at_step_hook{{.last_step = last_step}}, sw::summaries(sw::summary::scalar("loss", &trainee::result::loss)),
      sw::libtorch::scheduled(model.optimizer, sw::schedules::exponential_decay({.initial = 0.1, .decay_steps = 20, .decay_rate = 0.9})));
  for (const auto& step : session.steps(batches)) {
    if (step.global_step == killed_at) { std::raise(SIGKILL); }
  }
  session.close();
  std::printf("step %lld, checksum %08x\n", static_cast<long long>(session.global_step()), sw::checksum(model.variables()));
}
