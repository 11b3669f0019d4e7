// SPDX-License-Identifier: Apache-2.0
//
// libtorch_group [RUN_DIR [LAST_STEP [KILLED_RANK KILLED_AT]]]
// Trains a LibTorch network with several processes, for example with four on this machine:
//   torchrun --no-python --nproc-per-node 4 ./libtorch_group
// Without a launcher, the same program trains alone. Each number of processes up to `parts` gives the same bits, because each batch is divided into
// fixed parts whose gradients are added in a fixed order. The last arguments kill one process after that step, once, to show the recovery.
#include <stepwell/base/error.hpp>
#include <stepwell/data/shuffled_batches.hpp>
#include <stepwell/group/part_of.hpp>
#include <stepwell/hooks/nan_hooks.hpp>
#include <stepwell/hooks/stop_hooks.hpp>
#include <stepwell/torch/bucket.hpp>
#include <stepwell/torch/group.hpp>
#include <stepwell/torch/torch.hpp>
#include <stepwell/training/monitored_training_session.hpp>

#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

namespace sw = stepwell;

namespace {

struct example {
  float x[2];
  float y;
};

std::vector<example> make_examples(int count) {
  std::vector<example> made;
  for (int i = 0; i < count; ++i) {
    const float a = static_cast<float>(i % 40) / 20 - 1;
    const float b = static_cast<float>(i / 40) / 20 - 1;
    made.push_back({{a, b}, std::sin(3 * a) * b});
  }
  return made;
}

struct trainee {
  struct result {
    double loss;
  };
  explicit trainee(std::shared_ptr<sw::group> with) : group(std::move(with)) {}

  std::shared_ptr<sw::group> group;
  torch::nn::Sequential network{torch::nn::Linear(2, 32), torch::nn::Tanh(), torch::nn::Linear(32, 1)};
  torch::optim::Adam optimizer{network->parameters(), torch::optim::AdamOptions(1e-2)};
  sw::libtorch::bucket bucket{network->parameters()};
  std::size_t gradients = static_cast<std::size_t>(bucket.tensors()[0].numel());
  sw::part_sums<float> sums{group, gradients + 2};  // of the gradients, the loss, and the number of examples

  result step(const std::vector<sw::batch_part<std::vector<example>>>& parts) {
    const auto gradient = bucket.tensors()[0];
    sums.clear();
    for (const auto& [index, batch] : parts) {
      const auto rows = torch::from_blob(const_cast<example*>(batch.data()), {static_cast<std::int64_t>(batch.size()), 3});
      bucket.zero();
      const auto loss = (network->forward(rows.slice(1, 0, 2)) - rows.slice(1, 2)).square().sum();
      loss.backward();
      const auto part = sums.part(index);
      std::copy_n(gradient.data_ptr<float>(), gradients, part.data());
      part[gradients] = loss.item<float>();
      part[gradients + 1] = static_cast<float>(batch.size());
    }
    const auto total = sums.sum();
    const auto count = total[gradients + 1];
    std::transform(total.begin(), total.begin() + static_cast<std::ptrdiff_t>(gradients), gradient.data_ptr<float>(),
                   [&](float sum) { return sum / count; });
    optimizer.step();
    return {total[gradients] / count};
  }

  auto variables() {
    return sw::variables({{"network", sw::libtorch::variables(*network)}, {"adam", sw::libtorch::variables(optimizer, *network)}});
  }
};

/// Returns a hash of the bits of all parameters.
unsigned long long bits_of(const torch::nn::Sequential& network) {
  unsigned long long hash = 14'695'981'039'346'656'037U;
  for (const auto& one : network->parameters()) {
    const auto* bytes = static_cast<const unsigned char*>(one.data_ptr());
    for (std::size_t i = 0; i < one.nbytes(); ++i) { hash = (hash ^ bytes[i]) * 1'099'511'628'211U; }
  }
  return hash;
}

void train(const std::string& run_dir, std::int64_t last_step, int killed_rank, std::int64_t killed_at) {
  torch::set_num_threads(1);  // a fixed order of summation
  torch::manual_seed(1);      // the initial weights
  const auto examples = make_examples(1600);
  const auto group = sw::libtorch::make_group({.timeout_secs = 20, .parts = 4});
  trainee model(group);
  auto batches = sw::data::shuffled_batches(sw::parts_of(examples, group), {.batch_size = 64, .seed = 3});
  auto session =
      sw::monitored_training_session(model, {.checkpoint_dir = run_dir, .saves = {.save_steps = 20}, .max_wait_secs = 120, .group = group},
                                     sw::stop_at_step_hook{{.last_step = last_step}}, sw::nan_tensor_hook{&trainee::result::loss});
  for (const auto& step : session.steps(batches)) {
    std::printf("step %lld loss %.6f bits %016llx\n", static_cast<long long>(step.global_step), step.value.loss, bits_of(model.network));
    if (step.global_step == killed_at && group->rank() == killed_rank) {
      const auto mark = run_dir + ".killed";
      if (!std::filesystem::exists(mark)) {
        std::ofstream{mark}.flush();
        std::raise(SIGKILL);
      }
    }
  }
  session.close();
  std::printf("trained %lld steps, generation %lld, %d processes, bits %016llx\n", static_cast<long long>(session.global_step()),
              static_cast<long long>(group->generation()), group->size(), bits_of(model.network));
}

}  // namespace

int main(int count, char** arguments) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  try {
    train(count > 1 ? arguments[1] : "group-run", count > 2 ? std::stoll(arguments[2]) : 100, count > 3 ? std::stoi(arguments[3]) : -1,
          count > 4 ? std::stoll(arguments[4]) : -1);
  } catch (const sw::error& failed) {
    std::printf("error %s\n", failed.what());
    return 1;
  }
}
