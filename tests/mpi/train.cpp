// SPDX-License-Identifier: Apache-2.0
//
// mpi_train DIRECTORY LAST: one process of a training of LAST steps. It saves checkpoints in DIRECTORY, and appends the bits of the weight after
// each step to DIRECTORY.RANK, and writes its process id to DIRECTORY.id.RANK. Rank 0 prints a line after steps 50, 150, 250 and so on.
#include <stepwell/data/shuffled_batches.hpp>
#include <stepwell/group/part_of.hpp>
#include <stepwell/hooks/stop_hooks.hpp>
#include <stepwell/mpi/mpi.hpp>
#include <stepwell/training/monitored_training_session.hpp>

#include <unistd.h>
#include <bit>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace sw = stepwell;

namespace {

using examples = std::vector<double>;

/// Moves a weight towards the examples; its rounding depends on the order of the sum.
struct mean_model {
  struct result {
    double weight;
  };

  explicit mean_model(std::shared_ptr<sw::group> with) : sums(std::move(with), 1) {}

  result step(const std::vector<sw::batch_part<examples>>& parts) {
    sums.clear();
    for (const auto& [index, batch] : parts) {
      for (const auto value : batch) { sums.part(index)[0] += value - 0.37 * weight; }
    }
    weight += 0.1 * sums.sum()[0];
    return {weight};
  }
  [[nodiscard]] sw::variable_list variables() { return sw::variables({{"weight", weight}}); }

  sw::part_sums<double> sums;
  double weight = 0.5;
};

}  // namespace

int main(int argc, char* argv[]) {
  if (argc < 3) { return 2; }
  const std::string directory = argv[1];
  const auto group = sw::mpi::make_group(&argc, &argv, {.timeout_secs = 20, .parts = 4});
  const auto rank = std::to_string(group->rank());
  std::ofstream(directory + ".id." + rank) << ::getpid() << std::endl;
  std::ofstream seen(directory + "." + rank, std::ios::app);
  examples all;
  for (int i = 0; i < 50; ++i) { all.push_back(std::sin(i) / 3); }

  mean_model model(group);
  auto batches = sw::data::shuffled_batches(sw::parts_of(all, group), {.batch_size = 8, .seed = 3, .epochs = 100'000});
  auto session = sw::monitored_training_session(
      model, {.checkpoint_dir = directory, .save_checkpoint_steps = 100, .max_to_keep = sw::none, .stop_on = {SIGTERM}, .group = group},
      sw::stop_at_step(std::atoll(argv[2])));
  for (const auto& step : session.steps(batches)) {
    seen << step.global_step << ' ' << std::bit_cast<std::uint64_t>(step.value.weight) << std::endl;
    if (group->is_chief() && step.global_step % 100 == 50) {
      std::printf("step\n");
      std::fflush(stdout);
    }
  }
  session.close();
}
