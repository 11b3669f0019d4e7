// SPDX-License-Identifier: Apache-2.0
#include "torch_and_catch.hpp"

#include <stepwell/torch/evaluating.hpp>

#include "support/log_capture.hpp"
#include "support/temporary_directory.hpp"
#include "unit/hooks/event_reading.hpp"

#include <stepwell/base/error.hpp>
#include <stepwell/checkpoint/checksum.hpp>
#include <stepwell/hooks/best_checkpoint_hook.hpp>
#include <stepwell/hooks/early_stopping_hook.hpp>
#include <stepwell/hooks/evaluate_every.hpp>
#include <stepwell/hooks/scheduled_hook.hpp>
#include <stepwell/hooks/summary_saver_hook.hpp>
#include <stepwell/model/model_session.hpp>
#include <stepwell/torch/torch.hpp>
#include <stepwell/training/monitored_training_session.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace sw = stepwell;

namespace {

torch::nn::Sequential noisy_network() {
  return torch::nn::Sequential(torch::nn::Linear(3, 4), torch::nn::BatchNorm1d(4), torch::nn::Dropout(0.5), torch::nn::Linear(4, 1));
}

/// A network with dropout and running means. Its loss is a tensor.
struct trainee {
  struct result {
    torch::Tensor loss;
  };

  torch::nn::Sequential network = noisy_network();
  torch::optim::SGD optimizer{network->parameters(), torch::optim::SGDOptions(0.1)};
  double rate = 0.1;

  result step() {
    optimizer.zero_grad();
    auto loss = network->forward(torch::randn({8, 3})).pow(2).mean();
    loss.backward();
    optimizer.step();
    return {loss.detach()};
  }
  auto variables() { return sw::variables({{"network", sw::libtorch::variables(*network)}, {"rng", sw::libtorch::rng()}}); }
};

sw::variable_list without_generator(trainee& model) { return sw::variables({{"network", sw::libtorch::variables(*model.network)}}); }

/// Returns the checksum of the state after three steps. `look` is called before each step.
std::uint32_t trained(auto look) {
  torch::set_num_threads(1);
  torch::manual_seed(5);
  trainee model;
  for (int i = 0; i < 3; ++i) {
    look(model);
    model.step();
  }
  return sw::checksum(model.variables());
}

std::size_t warnings_about(const sw::test::log_capture& log, const std::string& words) {
  std::size_t count = 0;
  for (const auto& message : log.messages()) { count += message.text.find(words) != std::string::npos ? 1 : 0; }
  return count;
}

}  // namespace

TEST_CASE("a module that is evaluated within the guard trains as if it had not been evaluated", "[torch]") {
  const auto undisturbed = trained([](trainee&) {});
  CHECK(trained([](trainee& model) { model.network->forward(torch::randn({8, 3})); }) != undisturbed);  // the test can fail
  CHECK(trained([](trainee& model) {
          const sw::libtorch::evaluating guard(*model.network);
          const auto scores = model.network->forward(torch::randn({8, 3}));
          CHECK_FALSE(scores.requires_grad());
          CHECK(torch::equal(scores, scores));
        }) == undisturbed);
}

TEST_CASE("the guard restores the mode of each submodule", "[torch]") {
  auto network = noisy_network();
  network->ptr(1)->eval();  // a frozen normalisation
  {
    const sw::libtorch::evaluating guard(*network);
    CHECK_FALSE(network->is_training());
    CHECK_FALSE(network->ptr(2)->is_training());
  }
  CHECK(network->is_training());
  CHECK_FALSE(network->ptr(1)->is_training());
  CHECK(network->ptr(2)->is_training());
  CHECK(torch::GradMode::is_enabled());
}

TEST_CASE("a resumed run draws the random numbers of an uninterrupted one, if the generator is listed", "[torch]") {
  const sw::test::temporary_directory directory;
  const auto run = [&](const std::string& name, std::vector<int> parts) {
    std::uint32_t state = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      torch::manual_seed(i == 0 ? 1 : 99);
      trainee model;
      auto session = sw::monitored_training_session(model, {.checkpoint_dir = directory / name});
      for (int step = 0; step < parts[i]; ++step) { session.run(); }
      session.close();
      state = sw::checksum(model.variables());
    }
    return state;
  };
  CHECK(run("whole", {5}) == run("resumed", {2, 3}));
}

TEST_CASE("a module with dropout that is listed without a generator causes one warning that names the layer", "[torch]") {
  const sw::test::log_capture log;
  trainee model;
  static_cast<void>(model.variables());
  static_cast<void>(model.variables());
  CHECK(warnings_about(log, "draws random numbers") == 0);
  for (int i = 0; i < 3; ++i) { static_cast<void>(without_generator(model)); }
  CHECK(warnings_about(log, "the layer \"2\" of type torch::nn::Dropout") == 1);
  torch::nn::Sequential plain(torch::nn::Linear(2, 2), torch::nn::Dropout(0.0));
  torch::nn::LSTM recurrent(torch::nn::LSTMOptions(2, 2).num_layers(2).dropout(0.5));
  for (int i = 0; i < 2; ++i) {
    static_cast<void>(sw::libtorch::variables(*plain));
    static_cast<void>(sw::libtorch::variables(*recurrent));
  }
  CHECK(warnings_about(log, "draws random numbers") == 2);
  CHECK(warnings_about(log, "the module itself, of type torch::nn::LSTM") == 1);
}

TEST_CASE("a summary that runs a module in training mode is found by the check of summaries, and the guard prevents it", "[torch]") {
  const sw::test::temporary_directory directory;
  const auto run = [&](auto projection) {
    trainee model;
    auto session =
        sw::monitored_training_session(model, {.save_summaries_steps = 1, .check_summaries = true, .summary_dir = directory.path()},
                                       sw::summaries(sw::summary::scalar("mean", projection)));
    session.run();
    session.close();
  };
  CHECK_THROWS_WITH(run([](const trainee& now) { return now.network.ptr()->forward<torch::Tensor>(torch::ones({8, 3})).mean(); }),
                    ContainsSubstring("network/1/running_mean"));
  CHECK_NOTHROW(run([](const trainee& now) {
    const sw::libtorch::evaluating guard(*now.network);
    return now.network.ptr()->forward<torch::Tensor>(torch::ones({8, 3})).mean();
  }));
}

TEST_CASE("a tensor with one element is a number for every hook", "[torch]") {
  const sw::test::temporary_directory directory;
  trainee model;
  auto plateau =
      sw::reduce_on_plateau_hook{{.plateau = {.factor = 0.5, .patience = 1}, .every_n_steps = 1}, &trainee::rate, &trainee::result::loss};
  auto session = sw::monitored_training_session(model, {.checkpoint_dir = directory.path(), .save_summaries_steps = 1},
                                                sw::summaries(sw::summary::scalar("loss", &trainee::result::loss)), std::move(plateau),
                                                sw::early_stopping_hook{{.patience = 50}, &trainee::result::loss});
  const auto last = session.run().loss;
  session.close();
  CHECK(sw::test::scalars_in(directory.path(), "loss").at(1) == last.item<float>());
}

TEST_CASE("a tensor is read as a number from any type, and refused if it has several elements or is complex", "[torch]") {
  const auto number = [](const torch::Tensor& value) { return sw::tensor_adapter<at::Tensor>::number(value); };
  CHECK(number(torch::tensor(1.5)) == 1.5);
  CHECK(number(torch::tensor(std::int64_t{-3})) == -3);
  CHECK(number(torch::ones({1, 1}, torch::kBFloat16)) == 1);
  CHECK(number(torch::ones({}, torch::kFloat).requires_grad_()) == 1);
  CHECK_THROWS_AS(number(torch::ones({2})), sw::invalid_argument_error);
  CHECK_THROWS_AS(number(torch::ones({}, torch::kComplexFloat)), sw::invalid_argument_error);
  CHECK_THROWS_AS(number(torch::Tensor()), sw::invalid_argument_error);
}
