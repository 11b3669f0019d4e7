// SPDX-License-Identifier: Apache-2.0
//
// mpi_train DIRECTORY LAST: one process of a training of LAST steps. It saves checkpoints in DIRECTORY, and appends the bits of the weight after
// each step to DIRECTORY.RANK, and writes its process id to DIRECTORY.id.RANK. Rank 0 prints a line after steps 50, 150, 250 and so on.
#include "support/mean_model.hpp"

#include <stepwell/data/shuffled_batches.hpp>
#include <stepwell/group/part_of.hpp>
#include <stepwell/hooks/stop_hooks.hpp>
#include <stepwell/mpi/mpi.hpp>
#include <stepwell/training/monitored_training_session.hpp>

#include <unistd.h>
#include <bit>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

namespace sw = stepwell;

int main(int argc, char* argv[]) {
  if (argc < 3) { return 2; }
  const std::string directory = argv[1];
  const auto group = sw::mpi::make_group(&argc, &argv, {.timeout_secs = 20, .parts = 4});
  const auto rank = std::to_string(group->rank());
  std::ofstream(directory + ".id." + rank) << ::getpid() << std::endl;
  std::ofstream seen(directory + "." + rank, std::ios::app);
  const auto all = sw::test::mean_examples(50);

  sw::test::mean_model model(group);
  auto batches = sw::data::shuffled_batches(sw::parts_of(all, group), {.batch_size = 8, .seed = 3, .epochs = 100'000});
  auto session = sw::monitored_training_session(
      model,
      {.checkpoint_dir = directory, .saves = {.save_steps = 100, .saver = {.max_to_keep = sw::none}}, .stop_on = {SIGTERM}, .group = group},
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
