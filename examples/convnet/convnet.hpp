// SPDX-License-Identifier: Apache-2.0
//
// A small convolutional network for handwritten digits, trained with LibTorch's Adam, and its data.
#pragma once

#include "render.hpp"

#include <stepwell/base/variable.hpp>
#include <stepwell/checkpoint/update_fence.hpp>
#include <stepwell/torch/torch.hpp>

#include <torch/torch.h>

#include <cstdint>
#include <span>
#include <vector>

namespace convnet {

namespace sw = stepwell;

/// The network: 28x28 pixels in, ten scores out.
struct network_impl : torch::nn::Module {
  torch::nn::Conv2d narrow{nullptr}, wide{nullptr};
  torch::nn::Linear scores{nullptr};

  network_impl() {
    narrow = register_module("narrow", torch::nn::Conv2d(1, 8, 5));
    wide = register_module("wide", torch::nn::Conv2d(8, 16, 5));
    scores = register_module("scores", torch::nn::Linear(16 * 4 * 4, 10));
  }
  torch::Tensor forward(const torch::Tensor& images) {
    auto seen = torch::relu(torch::max_pool2d(narrow(images), 2));
    seen = torch::relu(torch::max_pool2d(wide(seen), 2));
    return scores(seen.flatten(1));
  }
};

/// Images of shape [count,1,28,28], from 0 (paper) to 1 (ink), with their labels.
struct batch {
  torch::Tensor images, labels;
};

/// A set of drawn digits, held in memory.
class drawings {
public:
  drawings(std::uint64_t seed, std::int64_t count) : all_{torch::empty({count, 1, 28, 28}), torch::empty({count}, torch::kLong)} {
    auto* pixels = all_.images.data_ptr<float>();
    for (std::int64_t i = 0; i < count; ++i) {
      const auto drawn = digits::render(seed, static_cast<std::uint64_t>(i));
      for (const auto pixel : drawn.pixels) { *pixels++ = static_cast<float>(pixel) / 255; }
      all_.labels[i] = drawn.digit;
    }
  }

  [[nodiscard]] std::uint64_t size() const { return static_cast<std::uint64_t>(all_.labels.size(0)); }
  [[nodiscard]] const convnet::batch& all() const noexcept { return all_; }
  [[nodiscard]] convnet::batch batch(std::span<const std::uint64_t> indices) const {
    const auto which = torch::tensor(std::vector<std::int64_t>(indices.begin(), indices.end()));
    return {all_.images.index_select(0, which), all_.labels.index_select(0, which)};
  }

private:
  convnet::batch all_;
};

/// A model for a session. Its checkpoints are copied between two steps.
struct trainee {
  struct result {
    double loss;
    torch::Tensor scores;
  };

  network_impl network;
  torch::optim::Adam optimizer{network.parameters(), torch::optim::AdamOptions(2e-3)};

  result step(const batch& seen) {
    optimizer.zero_grad();
    const auto scores = network.forward(seen.images);
    auto loss = torch::nll_loss(torch::log_softmax(scores, 1), seen.labels);
    loss.backward();
    optimizer.step();
    return {loss.item<double>(), scores.detach()};
  }
  auto variables() {
    return sw::variables({{"network", sw::libtorch::variables(network)}, {"adam", sw::libtorch::variables(optimizer, network)}});
  }

  /// Returns the fraction of `seen` that the network classifies correctly.
  double accuracy(const batch& seen) {
    const torch::NoGradGuard without_gradients;
    return network.forward(seen.images).argmax(1).eq(seen.labels).to(torch::kDouble).mean().item<double>();
  }
};

/// The same model. Its checkpoints are copied while the next step computes the gradients.
struct trainee_with_fence : trainee {
  result step(const batch& seen, sw::update_fence& fence) {
    optimizer.zero_grad();
    const auto scores = network.forward(seen.images);
    auto loss = torch::nll_loss(torch::log_softmax(scores, 1), seen.labels);
    loss.backward();
    sw::libtorch::step(optimizer, fence);  // waits until the snapshot is copied, then updates the parameters
    return {loss.item<double>(), scores.detach()};
  }
};

}  // namespace convnet
