// SPDX-License-Identifier: Apache-2.0
#include "torch_and_catch.hpp"

#include <stepwell/torch/evaluating.hpp>

#include "support/log_capture.hpp"
#include "support/temporary_directory.hpp"
#include "unit/hooks/event_reading.hpp"

#include <stepwell/base/error.hpp>
#include <stepwell/checkpoint/snapshot.hpp>
#include <stepwell/hooks/best_checkpoint_hook.hpp>
#include <stepwell/hooks/early_stopping_hook.hpp>
#include <stepwell/hooks/evaluate_every.hpp>
#include <stepwell/hooks/nan_hooks.hpp>
#include <stepwell/hooks/scheduled_hook.hpp>
#include <stepwell/hooks/summary_saver_hook.hpp>
#include <stepwell/model/model_session.hpp>
#include <stepwell/torch/schedule.hpp>
#include <stepwell/torch/torch.hpp>
#include <stepwell/training/monitored_training_session.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
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

namespace {

/// Returns how many warnings about random numbers there are after three lists of a module, with a call of `step` between two lists.
std::size_t warnings_after(const torch::nn::Module& module, auto step) {
  const sw::test::log_capture log;
  for (int i = 0; i < 3; ++i) {
    static_cast<void>(sw::libtorch::variables(module));
    step(i);
  }
  return warnings_about(log, "random numbers");
}

}  // namespace

TEST_CASE("a step that draws random numbers without a random layer causes one warning if no generator is listed", "[torch]") {
  std::vector<torch::nn::Linear> layers;  // each at an address of its own
  const auto layer = [&]() -> const torch::nn::Module& { return *layers.emplace_back(torch::nn::Linear(2, 2)); };
  const auto draw = [](int) { static_cast<void>(torch::nn::functional::dropout(torch::ones({4}))); };
  CHECK(warnings_after(layer(), draw) == 1);
  CHECK(warnings_after(layer(), [](int) {}) == 0);
  CHECK(warnings_after(layer(), [&](int i) {
          static_cast<void>(sw::libtorch::rng());
          draw(i);
        }) == 0);
  CHECK(warnings_after(layer(), [&](int i) {
          torch::manual_seed(static_cast<std::uint64_t>(7 + i));
          draw(i);
        }) == 0);
  CHECK(warnings_after(layer(), [&](int i) {
          const sw::libtorch::evaluating guard(*layers.back());
          draw(i);
        }) == 0);
}

TEST_CASE("layers with dropout inside and fractional pooling are known to draw random numbers", "[torch]") {
  const auto nothing = [](int) {};
  const torch::nn::MultiheadAttention attention(torch::nn::MultiheadAttentionOptions(4, 2).dropout(0.1));
  const torch::nn::MultiheadAttention certain(torch::nn::MultiheadAttentionOptions(4, 2));
  const torch::nn::FractionalMaxPool2d pooling(torch::nn::FractionalMaxPool2dOptions(2).output_ratio(0.5));
  CHECK(warnings_after(*attention, nothing) == 1);
  CHECK(warnings_after(*certain, nothing) == 0);
  CHECK(warnings_after(*pooling, nothing) == 1);
}

TEST_CASE("a checkpoint without the options of an optimiser is restored, and one line says that they keep their values", "[torch]") {
  struct listed {
    torch::nn::Linear layer{3, 1};
    torch::optim::Adam optimizer{layer->parameters(), torch::optim::AdamOptions(0.1)};
    bool has_options = true;
    int steps = 0;

    void step() { ++steps; }
    sw::variable_list variables() {
      auto list = sw::variables({{"steps", steps}, {"adam", sw::libtorch::variables(optimizer, *layer)}});
      if (!has_options) {
        std::erase_if(list, [](const auto& one) { return one.name().find("param_groups") != std::string::npos; });
      }
      return list;
    }
  };
  const sw::test::temporary_directory directory;
  const auto run = [&](bool has_options, double rate) {
    listed model;
    model.has_options = has_options;
    model.optimizer.param_groups()[0].options().set_lr(rate);
    auto session = sw::monitored_training_session(model, {.checkpoint_dir = directory.path()});
    const auto restored = model.optimizer.param_groups()[0].options().get_lr();
    session.run();
    session.close();
    return restored;
  };
  run(false, 0.1);
  {
    const sw::test::log_capture log;
    CHECK(run(true, 0.5) == 0.5);
    CHECK(warnings_about(log, "param_groups/0/lr") == 1);
  }
  const sw::test::log_capture log;
  CHECK(run(true, 0.7) == 0.5);  // restored now
  CHECK(warnings_about(log, "lr of parameter group 0 from 0.7 to 0.5") == 1);
}

TEST_CASE("a hook that sets the rate and a rollback find the options of the restored step", "[torch]") {
  struct losing {
    struct result {
      float loss;
    };
    torch::nn::Linear layer{3, 1};
    torch::optim::SGD optimizer{layer->parameters(), torch::optim::SGDOptions(1)};
    int failures = 0;
    std::vector<double> rates;

    torch::optim::OptimizerOptions& options() { return optimizer.param_groups()[0].options(); }
    result step() {
      rates.push_back(options().get_lr());
      options().set_lr(options().get_lr() / 2);
      return {rates.size() == 4 && failures++ == 0 ? std::numeric_limits<float>::quiet_NaN() : 0.0f};
    }
    sw::variable_list variables() { return sw::variables({{"sgd", sw::libtorch::variables(optimizer, *layer)}}); }
  };
  const sw::test::temporary_directory directory;
  losing own;
  {
    auto session = sw::monitored_training_session(own, {.checkpoint_dir = directory / "own", .saves = {.save_steps = 2}},
                                                  sw::rollback_on_nan_hook(&losing::result::loss, [] {}));
    for (int i = 0; i < 5; ++i) { session.run(); }
  }
  CHECK(std::vector(own.rates.begin(), own.rates.begin() + 6) == std::vector<double>{1, 0.5, 0.25, 0.125, 0.25, 0.125});
  losing scheduled;
  const auto rate = [](std::int64_t step) { return static_cast<double>(step); };
  for (int run = 0; run < 2; ++run) {
    auto session = sw::monitored_training_session(scheduled, {.checkpoint_dir = directory / "scheduled"},
                                                  sw::libtorch::scheduled(scheduled.optimizer, rate));
    session.run();
    session.close();
  }
  CHECK(scheduled.rates == std::vector<double>{0, 1});
}

TEST_CASE("a summary that runs a module in training mode is found by the check of summaries, and the guard prevents it", "[torch]") {
  const sw::test::temporary_directory directory;
  const auto run = [&](auto projection) {
    trainee model;
    auto session =
        sw::monitored_training_session(model, {.summary_dir = directory.path(), .summaries = {.save_steps = 1, .check_variables = true}},
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
  auto session = sw::monitored_training_session(model, {.checkpoint_dir = directory.path(), .summaries = {.save_steps = 1}},
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
