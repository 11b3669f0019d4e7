// SPDX-License-Identifier: Apache-2.0
#include "torch_and_catch.hpp"
#include "twins.hpp"

#include <stepwell/torch/bucket.hpp>

#include <stepwell/base/clock.hpp>
#include <stepwell/base/error.hpp>
#include <stepwell/group/engine.hpp>
#include <stepwell/group/group.hpp>
#include <stepwell/torch/replicas.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace sw = stepwell;

namespace {

torch::nn::Sequential network() {
  torch::manual_seed(1);
  return torch::nn::Sequential(torch::nn::Linear(3, 4), torch::nn::Linear(4, 1));
}

void backward(torch::nn::Sequential& model) { model->forward(torch::ones({2, 3})).sum().backward(); }

}  // namespace

TEST_CASE("a bucket adds all gradients of one type in one sum, and the optimiser sees the sums", "[torch][group]") {
  int sums = 0;
  sw::group pair(std::make_unique<sw::test::twin_engine>(sums));
  pair.form({.time = std::make_shared<sw::manual_clock>(), .stop = {}}, {});
  auto model = network();
  auto alone = network();
  sw::libtorch::bucket bucket(model->parameters());
  for (int step = 0; step < 2; ++step) {
    bucket.zero();
    backward(model);
    bucket.sum(pair);
    alone->zero_grad();
    backward(alone);
    for (std::size_t i = 0; i < model->parameters().size(); ++i) {
      CHECK(torch::equal(model->parameters()[i].grad(), 2 * alone->parameters()[i].grad()));
    }
  }
  CHECK(sums == 2);
  CHECK(bucket.tensors().size() == 1);
  CHECK(bucket.tensors()[0].numel() == 3 * 4 + 4 + 4 + 1);
}

TEST_CASE("a bucket has one flat tensor for each element type", "[torch][group]") {
  int sums = 0;
  sw::group pair(std::make_unique<sw::test::twin_engine>(sums));
  pair.form({.time = std::make_shared<sw::manual_clock>(), .stop = {}}, {});
  const auto wide = torch::ones({2}, torch::TensorOptions().dtype(torch::kDouble)).requires_grad_();
  const auto narrow = torch::ones({3}).requires_grad_();
  const auto fixed = torch::ones({5});
  sw::libtorch::bucket bucket({wide, narrow, fixed});
  (wide.sum() + narrow.sum() * 3).backward();
  bucket.sum(pair);
  CHECK(sums == 2);
  CHECK(bucket.tensors().size() == 2);
  CHECK(torch::equal(wide.grad(), torch::full({2}, 2.0, torch::kDouble)));
  CHECK(torch::equal(narrow.grad(), torch::full({3}, 6.0F)));
}

TEST_CASE("a bucket notices a gradient that something has replaced, and zero puts the views back", "[torch][group]") {
  sw::group alone(sw::make_single_process_engine());
  auto model = network();
  sw::libtorch::bucket bucket(model->parameters());
  for (auto& one : model->parameters()) { one.mutable_grad() = torch::Tensor(); }  // as optimizer.zero_grad(true) does
  backward(model);
  CHECK_THROWS_AS(bucket.sum(alone), sw::failed_precondition_error);
  bucket.zero();
  backward(model);
  CHECK_NOTHROW(bucket.sum(alone));
}

TEST_CASE("a bucket rejects parameters that a group cannot sum in place", "[torch][group]") {
  CHECK_THROWS_AS(sw::libtorch::bucket({torch::Tensor()}), sw::invalid_argument_error);
  CHECK_THROWS_AS(sw::libtorch::bucket({torch::zeros({2}, torch::TensorOptions().device(torch::kMeta)).requires_grad_()}),
                  sw::invalid_argument_error);
  const auto tied = torch::zeros({2}).requires_grad_();
  CHECK_THROWS_WITH(sw::libtorch::bucket({tied, tied}), ContainsSubstring("occurs twice"));
}

TEST_CASE("buffers of a module are averaged over the processes by choice", "[torch][group]") {
  int sums = 0;
  sw::group pair(std::make_unique<sw::test::twin_engine>(sums));
  pair.form({.time = std::make_shared<sw::manual_clock>(), .stop = {}}, {});
  torch::nn::Sequential model(torch::nn::Linear(3, 4), torch::nn::BatchNorm1d(4));
  model->forward(torch::randn({8, 3}));
  std::vector<torch::Tensor> before;
  for (const auto& one : model->buffers()) { before.push_back(one.clone()); }
  sw::libtorch::average_buffers(*model, pair);  // the other process has the same buffers
  CHECK(sums == 1);
  for (std::size_t i = 0; i < before.size(); ++i) { CHECK(torch::equal(model->buffers()[i], before[i])); }
  sw::libtorch::broadcast_buffers(*model, pair);
  CHECK(sums == 1);
}

TEST_CASE("random numbers of a process follow from the seed, its rank and the step", "[torch][group]") {
  const auto drawn = [](std::uint64_t seed, int rank, std::int64_t step) {
    sw::libtorch::seed_generators(seed, rank, step);
    return torch::rand({4});
  };
  CHECK(torch::equal(drawn(1, 2, 3), drawn(1, 2, 3)));
  CHECK_FALSE(torch::equal(drawn(1, 2, 3), drawn(2, 2, 3)));
  CHECK_FALSE(torch::equal(drawn(1, 2, 3), drawn(1, 3, 3)));
  CHECK_FALSE(torch::equal(drawn(1, 2, 3), drawn(1, 2, 4)));
}
