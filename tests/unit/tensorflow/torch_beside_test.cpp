// SPDX-License-Identifier: Apache-2.0
//
// LibTorch, libprotobuf and TensorFlow's library in one process: all three contain protobuf.
#include "unit/torch/torch_and_catch.hpp"

#include "stub_graph.hpp"
#include "support/log_capture.hpp"

#include <stepwell/tensorflow/training.hpp>
#include <stepwell/torch/torch.hpp>

#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/linear.h>

#include <string>
#include <vector>

namespace sw = stepwell;
namespace test = stepwell::test;
namespace tf = stepwell::tensorflow;

namespace {

/// Does one step of a layer of LibTorch. Returns its loss.
float torch_step(torch::nn::Linear& layer) {
  const auto loss = torch::nn::functional::mse_loss(layer->forward(torch::ones({2, 3})), torch::zeros({2, 1}));
  loss.backward();
  return loss.item<float>();
}

}  // namespace

TEST_CASE("libprotobuf, LibTorch and TensorFlow work in one process", "[tensorflow][real]") {
  const test::log_capture quiet;
  torch::nn::Linear layer(3, 1);
  CHECK(torch_step(layer) >= 0);
  auto graph = tf::graph::import_meta_graph(std::string(STEPWELL_TENSORFLOW_DATA) + "/graph/mlp/model.ckpt-0.meta");
  auto session = sw::monitored_training_session(graph);
  const std::vector<std::vector<tf::named_feed>> batches(
      3, {{"images:0", tf::tensor(sw::dtype::float32, {16, 64})}, {"labels:0", tf::tensor(sw::dtype::int64, {16})}});
  for ([[maybe_unused]] const auto& step : session.steps(batches)) { CHECK(torch_step(layer) >= 0); }
  CHECK(session.global_step() == 3);
  test::wire::MetaGraphDef parsed;
  CHECK(parsed.ParseFromString(test::stub_meta_graph().SerializeAsString()));
  // A tensor of LibTorch is fed as it is.
  const auto [hidden] = session.run(sw::fetch("loss:0"), sw::feed("images:0", torch::zeros({16, 64})),
                                    sw::feed("labels:0", torch::zeros({16}, torch::kInt64)));
  CHECK(hidden.as<float>() > 0);
  session.close();
  CHECK(torch_step(layer) >= 0);
}
