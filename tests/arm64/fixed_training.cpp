// SPDX-License-Identifier: Apache-2.0
//
// fixed_training DIRECTORY: trains a small model for a few steps. The checkpoints in the directory contain variables of many types, moving
// averages, and the state of hooks and of a shuffled source. The clock stands still. So all files except the event file have the same bytes
// on every machine and in each run; `bash tests/run arm64` compares them.
#include <stepwell/base/clock.hpp>
#include <stepwell/base/random.hpp>
#include <stepwell/data/shuffled_batches.hpp>
#include <stepwell/hooks/best_checkpoint_hook.hpp>
#include <stepwell/hooks/early_stopping_hook.hpp>
#include <stepwell/hooks/ema_hook.hpp>
#include <stepwell/hooks/stop_hooks.hpp>
#include <stepwell/training/monitored_training_session.hpp>

#include <complex>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace sw = stepwell;

namespace {

/// A linear model with variables of many types beside its weights. This file is compiled without fused multiplications and additions: the
/// bits of the user's own arithmetic are the user's.
struct model {
  struct result {
    double loss = 0;
  };
  std::vector<float> weights = std::vector<float>(999, 0.5F);
  std::vector<double> sums = std::vector<double>(101, 0.1);
  std::vector<std::int16_t> small = {-3, 2, 1};
  std::vector<std::complex<float>> waves = {{1, -1}, {0.25F, 3}};
  std::vector<std::string> words = {"", "one"};
  bool is_odd = false;
  std::uint8_t byte = 200;
  sw::random_stream random{11};

  result step(const std::vector<std::int32_t>& batch) {
    double loss = 0;
    for (const auto example : batch) {
      for (auto& weight : weights) { weight += (static_cast<float>(example) - weight) * static_cast<float>(random.uniform() * 0.125); }
      loss += static_cast<double>(weights.front()) / 3;
    }
    for (auto& sum : sums) { sum = sum * 0.9 + loss; }
    words.back() += std::to_string(batch.front());
    waves.front() *= std::complex<float>(0, 1);
    is_odd = !is_odd;
    ++byte;
    return {loss};
  }
  sw::variable_list variables() {
    auto drawn = random.state();
    return sw::variables({{"weights", weights},
                          {"sums", sums},
                          {"small", small},
                          {"waves", waves},
                          {"words", words},
                          {"is_odd", is_odd},
                          {"byte", byte},
                          {"random", drawn}});
  }
};

void train(const std::string& directory) {
  std::vector<std::int32_t> examples;
  for (int i = 0; i < 50; ++i) { examples.push_back(i * i % 37 - 18); }
  auto batches = sw::data::shuffled_batches(examples, {.batch_size = 8, .seed = 7, .epochs = 100});
  model trained;
  sw::ema_hook average({.decay = 0.9}, trained);
  auto session =
      sw::monitored_training_session(trained,
                                     {.checkpoint_dir = directory,
                                      .saves = {.save_steps = 6},
                                      .step_counter = {.every_n_steps = sw::none},
                                      .clock = std::make_shared<sw::manual_clock>()},
                                     std::ref(average), sw::early_stopping_hook{{.patience = 1000}, &model::result::loss},
                                     sw::best_checkpoint_hook{{.keep = 2}, &model::result::loss}, sw::stop_at_step_hook{{.last_step = 40}});
  for ([[maybe_unused]] const auto& step : session.steps(batches)) {}
  session.close();
}

}  // namespace

int main(int count, char** words) {
  if (count != 2) { return 2; }
  try {
    train(words[1]);
    return 0;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "fixed_training: %s\n", failure.what());
    return 1;
  }
}
