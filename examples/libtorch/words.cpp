// SPDX-License-Identifier: Apache-2.0
//
// libtorch_words [RUN_DIR [LAST_STEP [KILLED_AT]]]
// A language model: an LSTM that predicts the next word of a text that a small grammar makes. Its hidden state goes from one step to the next, so it is
// a variable, too. The checkpoint is copied while the next step computes. The last argument kills the run after that step.
#include <stepwell/checkpoint/snapshot.hpp>
#include <stepwell/hooks/stop_hooks.hpp>
#include <stepwell/hooks/summary_saver_hook.hpp>
#include <stepwell/torch/torch.hpp>
#include <stepwell/training/monitored_training_session.hpp>

#include <torch/torch.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <tuple>

namespace sw = stepwell;
namespace nn = torch::nn;

namespace {

constexpr std::int64_t vocabulary = 40, rows = 32, length = 12, width = 48;

/// The text of step number `step`: each word depends on the one before it, and on chance.
torch::Tensor words_of(std::uint64_t step) {
  auto text = torch::empty({length + 1, rows}, torch::kLong);
  auto generator = at::detail::createCPUGenerator(step);
  const auto chance = torch::randint(3, {length + 1, rows}, generator);
  text[0] = torch::randint(vocabulary, {rows}, generator);
  for (std::int64_t i = 1; i <= length; ++i) { text[i] = (text[i - 1] * 7 + chance[i] + 1) % vocabulary; }
  return text;
}

struct language_model : nn::Module {
  nn::Embedding embedding = register_module("embedding", nn::Embedding(vocabulary, width));
  nn::LSTM recurrent = register_module("recurrent", nn::LSTM(nn::LSTMOptions(width, width).num_layers(2).dropout(0.2)));
  nn::Linear scores = register_module("scores", nn::Linear(width, vocabulary));
};

struct trainee {
  struct result {
    torch::Tensor loss;
  };

  std::shared_ptr<language_model> net = std::make_shared<language_model>();
  torch::optim::Adam optimizer{net->parameters(), torch::optim::AdamOptions(5e-3)};
  torch::Tensor hidden = torch::zeros({2, rows, width}), cell = torch::zeros({2, rows, width});
  std::int64_t next = 0;  // the number of the next text

  result step(sw::update_fence& fence) {
    const auto text = words_of(static_cast<std::uint64_t>(next));
    optimizer.zero_grad();
    const auto [outputs, state] = net->recurrent(net->embedding(text.slice(0, 0, length)), std::make_tuple(hidden, cell));
    hidden = std::get<0>(state).detach();  // a tensor may be replaced before the fence: a snapshot keeps the previous one
    cell = std::get<1>(state).detach();
    const auto loss = torch::cross_entropy_loss(net->scores(outputs).view({-1, vocabulary}), text.slice(0, 1).reshape({-1}));
    loss.backward();
    nn::utils::clip_grad_norm_(net->parameters(), 1.0);
    sw::libtorch::step(optimizer, fence);
    ++next;
    return {loss.detach()};
  }
  auto variables() {
    return sw::variables({{"net", sw::libtorch::variables(*net)},
                          {"adam", sw::libtorch::variables(optimizer, *net)},
                          {"hidden", hidden},
                          {"cell", cell},
                          {"next", next},
                          {"rng", sw::libtorch::rng()}});
  }
};

}  // namespace

int main(int count, char** arguments) {
  const std::string run_dir = count > 1 ? arguments[1] : "words-run";
  const std::int64_t last_step = count > 2 ? std::stoll(arguments[2]) : 300;
  const std::int64_t killed_at = count > 3 ? std::stoll(arguments[3]) : -1;

  torch::set_num_threads(1);  // a fixed order of summation
  torch::manual_seed(1);
  trainee model;
  auto session = sw::monitored_training_session(
      model, {.checkpoint_dir = run_dir, .saves = {.save_steps = 5}, .summaries = {.save_steps = 10}, .check_update_fence = true},
      sw::stop_at_step_hook{{.last_step = last_step}}, sw::summaries(sw::summary::scalar("loss", &trainee::result::loss)));
  for (const auto& step : session.steps()) {
    if (step.global_step == killed_at) { std::raise(SIGKILL); }
  }
  session.close();
  std::printf("step %lld, checksum %08x\n", static_cast<long long>(session.global_step()), sw::checksum(model.variables()));
}
