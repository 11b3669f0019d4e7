// SPDX-License-Identifier: Apache-2.0
#include <stepwell/torch/torch.hpp>

#include "support/catch.hpp"

#include <stepwell/base/error.hpp>

#include <torch/torch.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <vector>

namespace sw = stepwell;

namespace {

static_assert(sw::variable_like<torch::Tensor> && std::is_constructible_v<sw::variable_ref, std::string, torch::Tensor>);

std::vector<std::string> names_of(const sw::variable_list& list) {
  std::vector<std::string> names;
  for (const auto& variable : list) { names.push_back(variable.name()); }
  return names;
}

torch::nn::Sequential small_network() {
  torch::manual_seed(1);
  return torch::nn::Sequential(torch::nn::Linear(3, 2), torch::nn::BatchNorm1d(2));
}

/// Three steps of the optimiser.
void train(torch::nn::Sequential& network, torch::optim::Optimizer& optimizer) {
  torch::manual_seed(2);
  for (int i = 0; i < 3; ++i) {
    optimizer.zero_grad();
    network->forward(torch::randn({8, 3})).pow(2).mean().backward();
    optimizer.step();
  }
}

/// What three steps make of a network whose optimiser's state was asked for before, or not.
template<class Optimizer, class Options>
std::vector<float> trained(const Options& options, bool is_asked) {
  auto network = small_network();
  Optimizer optimizer(network->parameters(), options);
  if (is_asked) { (void)sw::libtorch::variables(optimizer, *network); }
  train(network, optimizer);
  const auto weights = network->parameters()[0].detach();
  return {weights.data_ptr<float>(), weights.data_ptr<float>() + weights.numel()};
}

}  // namespace

TEST_CASE("a tensor is a variable of its type and shape, and its memory is restored into", "[torch]") {
  auto weights = torch::arange(6, torch::kFloat).reshape({2, 3});
  const sw::variable_ref ref("weights", weights);
  CHECK(ref.dtype() == sw::dtype::float32);
  CHECK(ref.shape() == sw::tensor_shape{2, 3});
  const float restored = 9;
  std::memcpy(ref.writable_bytes().data() + 5 * sizeof restored, &restored, sizeof restored);
  CHECK(weights[1][2].item<float>() == 9);
  CHECK(sw::variable_ref("scalar", torch::tensor(std::int64_t{3})).shape().empty());
  CHECK(sw::variable_ref("half", torch::zeros({2}, torch::kBFloat16)).dtype() == sw::dtype::bfloat16);
}

TEST_CASE("a tensor that a checkpoint cannot hold is refused by name, with the reason", "[torch]") {
  const auto refused = [](const torch::Tensor& tensor) {
    try {
      (void)sw::variables({{"encoder/weights", tensor}});
    } catch (const sw::invalid_argument_error& failure) { return std::string(failure.what()); }
    return std::string("accepted");
  };
  CHECK_THAT(refused(torch::zeros({2, 3}).t()), ContainsSubstring("encoder/weights") && ContainsSubstring("row-major"));
  CHECK_THAT(refused(torch::Tensor()), ContainsSubstring("undefined"));
  CHECK_THAT(refused(torch::zeros({2, 2}).to_sparse()), ContainsSubstring("sparse"));
}

TEST_CASE("a module's parameters and buffers are named by their path", "[torch]") {
  auto network = small_network();
  CHECK(names_of(sw::libtorch::variables(*network)) ==
        std::vector<std::string>{"0/weight", "0/bias", "1/weight", "1/bias", "1/running_mean", "1/running_var", "1/num_batches_tracked"});
  CHECK(sw::libtorch::variables(*network)[0].bytes().data() == network->parameters()[0].data_ptr());
}

TEST_CASE("an optimiser's state is there before its first step, and is named by parameter", "[torch]") {
  auto network = small_network();
  torch::optim::Adam adam(network->parameters());
  const auto names = names_of(sw::libtorch::variables(adam, *network));
  REQUIRE(names.size() == 12);
  CHECK(names[0] == "0/weight/step");
  CHECK(names[1] == "0/weight/exp_avg");
  CHECK(names[5] == "0/bias/exp_avg_sq");
  train(network, adam);
  CHECK(names_of(sw::libtorch::variables(adam, *network)) == names);
  std::int64_t step = 0;
  std::memcpy(&step, sw::libtorch::variables(adam, *network)[0].bytes().data(), sizeof step);
  CHECK(step == 3);

  torch::optim::SGD plain(network->parameters(), torch::optim::SGDOptions(0.1));
  CHECK(sw::libtorch::variables(plain, *network).empty());
  torch::optim::SGD heavy(network->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  CHECK(names_of(sw::libtorch::variables(heavy, *network))[0] == "0/weight/momentum_buffer");
}

TEST_CASE("an optimiser whose state was asked for before trains as one whose was not", "[torch]") {
  using namespace torch::optim;
  CHECK(trained<Adam>(AdamOptions(0.1), true) == trained<Adam>(AdamOptions(0.1), false));
  CHECK(trained<Adam>(AdamOptions(0.1).amsgrad(true), true) == trained<Adam>(AdamOptions(0.1).amsgrad(true), false));
  CHECK(trained<AdamW>(AdamWOptions(0.1), true) == trained<AdamW>(AdamWOptions(0.1), false));
  CHECK(trained<SGD>(SGDOptions(0.1).momentum(0.9), true) == trained<SGD>(SGDOptions(0.1).momentum(0.9), false));
}

TEST_CASE("optimisers whose state is not known are refused", "[torch]") {
  auto network = small_network();
  torch::optim::RMSprop other(network->parameters());
  CHECK_THROWS_WITH(sw::libtorch::variables(other, *network), ContainsSubstring("Adam, AdamW and SGD"));
  torch::optim::SGD dampened(network->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9).dampening(0.5));
  CHECK_THROWS_WITH(sw::libtorch::variables(dampened, *network), ContainsSubstring("dampening"));
  auto foreign = small_network();
  torch::optim::Adam adam(foreign->parameters());
  CHECK_THROWS_WITH(sw::libtorch::variables(adam, *network), ContainsSubstring("none of the module's"));
}
