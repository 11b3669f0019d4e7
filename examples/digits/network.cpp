// SPDX-License-Identifier: Apache-2.0
#include "network.hpp"

#include "render.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <vector>

namespace digits {
namespace {

constexpr std::size_t classes = 10;

/// Returns He's limit of the weights, for a layer followed by ReLU.
float he(std::size_t inputs) { return std::sqrt(6.0F / static_cast<float>(inputs)); }
/// Returns Glorot's limit of the weights.
float glorot(std::size_t inputs, std::size_t outputs) { return std::sqrt(6.0F / static_cast<float>(inputs + outputs)); }

void rectify(matrix& values) {
  for (float& value : std::span(values.data(), values.size())) { value = value > 0 ? value : 0; }
}

/// Sets the gradient to zero where the unit was inactive.
void rectify_gradient(matrix& gradient, const matrix& activations) {
  for (std::size_t i = 0; i < gradient.size(); ++i) { gradient.data()[i] = activations.data()[i] > 0 ? gradient.data()[i] : 0; }
}

}  // namespace

network::network(std::size_t hidden_size, std::uint64_t seed)
    : hidden(image_pixels, hidden_size, he(image_pixels), stepwell::random_stream(seed, 0)),
      output(hidden_size, classes, glorot(hidden_size, classes), stepwell::random_stream(seed, 1)) {}

void network::predict(const matrix& images, matrix& activations, matrix& logits) const {
  hidden.forward(images, activations);
  rectify(activations);
  output.forward(activations, logits);
}

score network::compute_gradients(const batch& examples) {
  predict(examples.images, activations_, logits_);
  const auto told = cross_entropy(logits_, examples.labels);

  output.backward(activations_, logits_);
  output.backward_inputs(logits_, activation_gradient_);
  rectify_gradient(activation_gradient_, activations_);
  hidden.backward(examples.images, activation_gradient_);
  return told;
}

network::result network::step(const batch& examples, stepwell::update_fence& fence) {
  auto told = examples.labels.size() > 0 ? compute_gradients(examples) : score();
  if (group && group->size() > 1) { average_over_group(examples.labels.size(), told); }

  fence.wait();
  output.learn(optimizer);
  hidden.learn(optimizer);
  optimizer.next_step();
  return told;
}

void network::average_over_group(std::size_t examples, score& told) {
  const auto each_gradient = [this](auto use) {
    for (auto* layer : {&hidden, &output}) {
      use(std::span(layer->kernel.gradient.data(), layer->kernel.gradient.size()));
      use(std::span(layer->bias.gradient.data(), layer->bias.gradient.size()));
    }
  };
  const auto count = static_cast<float>(examples);
  sums_.clear();
  each_gradient([&](std::span<float> gradient) {
    for (const float mean : gradient) { sums_.push_back(examples == 0 ? 0 : mean * count); }
  });
  sums_.insert(sums_.end(), {told.loss * count, told.accuracy * count, count});
  group->sum(sums_);

  const auto all = sums_.back();
  const float* sum = sums_.data();
  each_gradient([&](std::span<float> gradient) {
    for (float& mean : gradient) { mean = *sum++ / all; }
  });
  told = {sum[0] / all, sum[1] / all};
}

network::result network::evaluate(const batch& examples) const {
  matrix activations, logits;
  predict(examples.images, activations, logits);
  return cross_entropy(logits, examples.labels);
}

stepwell::variable_list network::variables() {
  return stepwell::variables({{"hidden", hidden.variables()},
                              {"output", output.variables()},
                              {"beta1_power", optimizer.beta1_power},
                              {"beta2_power", optimizer.beta2_power}});
}

score evaluate(const network& model, const dataset& examples) {
  constexpr std::uint64_t at_once = 500;
  double loss = 0;
  double accuracy = 0;
  batch some;
  std::vector<std::uint64_t> indices;
  for (std::uint64_t first = 0; first < examples.size(); first += at_once) {
    indices.resize(std::min(at_once, examples.size() - first));
    std::iota(indices.begin(), indices.end(), first);
    examples.gather(indices, some);
    const auto part = model.evaluate(some);
    loss += static_cast<double>(part.loss) * static_cast<double>(indices.size());
    accuracy += static_cast<double>(part.accuracy) * static_cast<double>(indices.size());
  }
  const auto count = static_cast<double>(examples.size());
  return {static_cast<float>(loss / count), static_cast<float>(accuracy / count)};
}

}  // namespace digits
