// SPDX-License-Identifier: Apache-2.0
#include "torch_and_catch.hpp"
#include "twins.hpp"

#include <stepwell/torch/examples.hpp>

#include "support/temporary_directory.hpp"

#include <stepwell/base/clock.hpp>
#include <stepwell/base/error.hpp>
#include <stepwell/base/random.hpp>
#include <stepwell/data/prefetch.hpp>
#include <stepwell/group/part_of.hpp>
#include <stepwell/hooks/stop_hooks.hpp>
#include <stepwell/model/model_session.hpp>
#include <stepwell/torch/schedule.hpp>
#include <stepwell/torch/torch.hpp>
#include <stepwell/training/monitored_training_session.hpp>

#include <torch/csrc/jit/serialization/import.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace sw = stepwell;

namespace {

/// 10 examples: the number i, and i % 2.
struct numbers : torch::data::datasets::Dataset<numbers> {
  torch::data::Example<> get(std::size_t index) override {
    return {torch::tensor(static_cast<float>(index)), torch::tensor(static_cast<std::int64_t>(index % 2))};
  }
  [[nodiscard]] decltype(std::declval<torch::data::datasets::MNIST>().size()) size() const override { return 10; }
};

auto batches_of(std::uint64_t seed) {
  return sw::data::shuffled_batches(sw::libtorch::examples(numbers().map(torch::data::transforms::Stack<>())),
                                    {.batch_size = 4, .seed = seed});
}

std::vector<float> values_in(const torch::data::Example<>& batch) {
  return {batch.data.data_ptr<float>(), batch.data.data_ptr<float>() + batch.data.numel()};
}

torch::nn::Linear linear(int in, int out) { return torch::nn::Linear(in, out); }

}  // namespace

TEST_CASE("a dataset of LibTorch has a seekable order, with its transforms and its collation", "[torch][data]") {
  auto batches = batches_of(3);
  static_assert(sw::data::seekable_source<decltype(batches)> && sw::data::epoch_source<decltype(batches)>);
  std::vector<std::vector<float>> seen;
  for (int i = 0; i < 3; ++i) {
    seen.push_back(values_in(*batches.peek()));
    CHECK(batches.peek()->target[0].item<std::int64_t>() == static_cast<std::int64_t>(seen.back()[0]) % 2);
    batches.advance();
  }
  CHECK(seen[0].size() == 4);
  CHECK(seen[2].size() == 2);
  auto ahead = sw::data::prefetch(batches_of(3));
  ahead.seek(4);
  CHECK(values_in(*ahead.peek()) == seen[1]);
}

TEST_CASE("a batch with fewer examples than a group has processes has empty parts", "[torch][data][group]") {
  int sums = 0;
  auto pair = std::make_shared<sw::group>(std::make_unique<sw::test::twin_engine>(sums));
  pair->form({.time = std::make_shared<sw::manual_clock>(), .stop = {}}, {});
  auto stacked = sw::data::shuffled_batches(sw::part_of(sw::libtorch::examples(numbers().map(torch::data::transforms::Stack<>())), pair),
                                            {.batch_size = 3});
  std::vector<std::int64_t> sizes;
  for (int i = 0; i < 4; ++i) {
    const auto& batch = *stacked.peek();
    sizes.push_back(batch.data.size(0));
    CHECK(batch.target.size(0) == batch.data.size(0));
    CHECK(batch.target.scalar_type() == torch::kLong);
    stacked.advance();
  }
  CHECK(sizes == std::vector<std::int64_t>{1, 1, 1, 0});       // 10 examples: 3, 3, 3 and 1
  CHECK(sw::libtorch::examples(numbers()).batch({}).empty());  // without a collation
}

TEST_CASE("a resumed run gets the same random transforms if the model lists the generators of LibTorch", "[torch][data]") {
  struct summing {
    torch::Tensor sum = torch::zeros({1});
    void step(const torch::data::Example<>& batch) { sum += batch.data.sum(); }
    sw::variable_list variables() { return sw::variables({{"sum", sum}, {"rng", sw::libtorch::rng()}}); }
  };
  const auto noisy = [](torch::data::Example<> one) {
    one.data += torch::rand({});
    return one;
  };
  const sw::test::temporary_directory directory;
  const auto sum_after = [&](const std::string& run, const std::vector<std::int64_t>& ends) {
    float sum = 0;
    for (std::size_t i = 0; i < ends.size(); ++i) {
      torch::manual_seed(i + 1);  // a new process has another state
      summing model;
      auto dataset = numbers().map(torch::data::transforms::Lambda<torch::data::Example<>>(noisy)).map(torch::data::transforms::Stack<>());
      auto batches = sw::data::shuffled_batches(sw::libtorch::examples(std::move(dataset)), {.batch_size = 4, .seed = 3});
      auto session = sw::monitored_training_session(model, {.checkpoint_dir = directory / run}, sw::stop_at_step(ends[i]));
      for (const auto& step : session.steps(batches)) { static_cast<void>(step); }
      session.close();
      sum = model.sum.item<float>();
    }
    return sum;
  };
  CHECK(sum_after("resumed", {2, 5}) == sum_after("whole", {5}));
}

namespace {

// The two types of docs/how_to/libtorch.md.

/// Draws examples in proportion to weights. A draw depends only on its number, so a resumed run draws the same examples.
template<class Examples>
struct weighted_examples {
  Examples examples;
  std::vector<double> cumulative;  // cumulative[i]: the sum of the weights of the examples 0 to i
  std::uint64_t draws;             // of the whole training

  std::uint64_t size() const { return draws; }
  auto batch(sw::data::example_indices numbers) const {
    std::vector<std::uint64_t> drawn;
    for (const auto number : numbers) {
      const double at = 0x1p-64 * static_cast<double>(sw::random_bits(7, number, 0)) * cumulative.back();
      const auto found = std::ranges::upper_bound(cumulative, at);
      drawn.push_back(static_cast<std::uint64_t>(std::min(found, cumulative.end() - 1) - cumulative.begin()));
    }
    return examples.batch(drawn);
  }
};

struct accumulating {
  struct result {
    torch::Tensor loss;
  };
  torch::nn::Linear net{1, 1};
  torch::optim::SGD optimizer{net->parameters(), torch::optim::SGDOptions(0.1)};
  std::int64_t parts = 4;

  result step(const torch::data::Example<>& batch) {
    optimizer.zero_grad();
    const auto inputs = batch.data.chunk(parts);
    const auto targets = batch.target.chunk(parts);
    auto loss = torch::zeros({});
    for (std::size_t i = 0; i < inputs.size(); ++i) {  // the memory of one part at a time
      auto part = torch::mse_loss(net->forward(inputs[i]), targets[i], torch::Reduction::Sum) / batch.data.size(0);
      part.backward();
      loss += part.detach();
    }
    optimizer.step();
    return {loss};
  }
  auto variables() { return sw::variables({{"net", sw::libtorch::variables(*net)}, {"sgd", sw::libtorch::variables(optimizer, *net)}}); }
};

}  // namespace

TEST_CASE("gradients that are accumulated over parts of a batch are those of the batch", "[torch]") {
  torch::manual_seed(1);
  accumulating whole;
  whole.parts = 1;
  accumulating divided;
  torch::NoGradGuard without_gradients;
  divided.net->weight.copy_(whole.net->weight);
  divided.net->bias.copy_(whole.net->bias);
  torch::AutoGradMode with_gradients(true);
  const torch::data::Example<> batch(torch::arange(10, torch::kFloat).reshape({10, 1}) / 10, torch::ones({10, 1}));
  for (int i = 0; i < 5; ++i) { CHECK(torch::allclose(whole.step(batch).loss, divided.step(batch).loss)); }
  CHECK(torch::allclose(whole.net->weight, divided.net->weight));
}

TEST_CASE("a sampler that draws by weights is a dataset, and continues at any position with the same examples", "[torch][data]") {
  auto examples = sw::libtorch::examples(numbers().map(torch::data::transforms::Stack<>()));
  std::vector<double> cumulative(10, 0.0);
  for (std::size_t i = 3; i < 10; ++i) { cumulative[i] = i < 7 ? 1 : 4; }  // example 3 has weight 1, and example 7 weight 3
  auto batches =
      sw::data::shuffled_batches(weighted_examples<decltype(examples)>{std::move(examples), cumulative, 400}, {.batch_size = 200});
  const auto first = values_in(*batches.peek());
  batches.advance();
  const auto second = values_in(*batches.peek());
  CHECK(std::ranges::count(first, 3.0F) + std::ranges::count(first, 7.0F) == 200);
  CHECK(std::ranges::count(first, 7.0F) > 2 * std::ranges::count(first, 3.0F));
  batches.seek(0);
  CHECK(values_in(*batches.peek()) == first);
  batches.seek(200);
  CHECK(values_in(*batches.peek()) == second);
}

TEST_CASE("the learning rate of an optimiser follows a schedule, also of some of its groups", "[torch]") {
  auto layer = linear(3, 2);
  torch::optim::SGD optimizer(std::vector<torch::optim::OptimizerParamGroup>{{{layer->weight}}, {{layer->bias}}},
                              torch::optim::SGDOptions(1));
  const auto rates = [&] {
    return std::vector<double>{optimizer.param_groups()[0].options().get_lr(), optimizer.param_groups()[1].options().get_lr()};
  };
  struct stepping {
    int count = 0;
    int step() { return ++count; }
    sw::variable_list variables() { return sw::variables({{"count", count}}); }
  } model;
  const auto halves = [](std::int64_t step) { return 1.0 / static_cast<double>(step + 1); };
  {
    sw::monitored_session session(model, sw::libtorch::scheduled(optimizer, halves));
    session.run();
    session.run();
    CHECK(rates() == std::vector<double>{0.5, 0.5});
  }
  {
    sw::monitored_session session(model, sw::libtorch::scheduled(optimizer, [](std::int64_t) { return 7.0; }, {1}));
    session.run();
    CHECK(rates() == std::vector<double>{0.5, 7.0});
  }
  CHECK_THROWS_WITH(sw::libtorch::scheduled(optimizer, halves, {2}),
                    ContainsSubstring("2 parameter groups") && ContainsSubstring("number 2"));
}

TEST_CASE("an optimiser may train several modules and tensors, which give its state their names", "[torch]") {
  auto encoder = linear(3, 2);
  auto decoder = linear(2, 3);
  auto scale = torch::ones({1}).requires_grad_();
  auto parameters = encoder->parameters();
  for (const auto& more : decoder->parameters()) { parameters.push_back(more); }
  parameters.push_back(scale);
  torch::optim::Adam optimizer(parameters);
  const auto list = sw::libtorch::variables(optimizer, {{"encoder", *encoder}, {"decoder", *decoder}, {"scale", scale}});
  std::vector<std::string> names;
  for (const auto& one : list) { names.push_back(one.name()); }
  CHECK(names.front() == "encoder/weight/step");
  CHECK(names[14] == "scale/exp_avg_sq");
  CHECK(names.size() == 21);
  CHECK_THROWS_WITH(sw::libtorch::variables(optimizer, {{"encoder", *encoder}, {"scale", scale}}),
                    ContainsSubstring("parameter 2 of group 0") && ContainsSubstring("[3,2]"));
}

TEST_CASE("the parameters of a module that was loaded from TorchScript are variables", "[torch]") {
  torch::jit::Module module("scaled");
  module.register_parameter("weight", torch::ones({3}), false);
  module.register_buffer("mean", torch::zeros({3}));
  std::stringstream file;
  module.save(file);
  auto loaded = torch::jit::load(file);
  const auto list = sw::libtorch::variables(loaded);
  REQUIRE(list.size() == 2);
  CHECK(list[0].name() == "weight");
  CHECK(list[1].is_early());
  CHECK(list[0].bytes().data() == loaded.attr("weight").toTensor().data_ptr());
}
