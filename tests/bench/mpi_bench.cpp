// SPDX-License-Identifier: Apache-2.0
//
// mpi_bench: the first sum of a step, with the vote of the group and under the watchdog, beside a bare MPI_Allreduce. Each pair measures both
// in turns, and is short, so that other programs disturb few pairs. Rank 0 prints the medians. Start it with mpirun.
#include <stepwell/mpi/mpi.hpp>

#include "bench/timing.hpp"

#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <vector>

namespace sw = stepwell;

namespace {

constexpr int pairs = 2001;

void measure(sw::group& group, std::int64_t& step, int count) {
  const int repetitions = std::clamp(100'000 / count, 1, 100);
  std::vector<float> values(static_cast<std::size_t>(count));  // zeros, which remain zeros
  const auto ours = [&] {
    for (int i = 0; i < repetitions; ++i, ++step) { group.sum(values); }
  };
  const auto theirs = [&] {
    for (int i = 0; i < repetitions; ++i) { MPI_Allreduce(MPI_IN_PLACE, values.data(), count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); }
  };
  std::vector<double> our_times;
  std::vector<double> their_times;
  std::vector<double> ratios;
  std::vector<double> differences;
  for (int pair = 0; pair < pairs / (count > 1000 ? 4 : 1); ++pair) {
    if (pair % 2 == 0) { our_times.push_back(sw::bench::seconds_of(ours)); }
    their_times.push_back(sw::bench::seconds_of(theirs));
    if (pair % 2 != 0) { our_times.push_back(sw::bench::seconds_of(ours)); }
    ratios.push_back(our_times.back() / their_times.back());
    differences.push_back((our_times.back() - their_times.back()) / repetitions);
  }
  if (group.rank() != 0) { return; }
  std::printf("%d ranks, %7d floats: sum %9.2f us, MPI_Allreduce %9.2f us, median of the ratios %.4f, of the differences %.3f us\n",
              group.size(), count, sw::bench::median(our_times) / repetitions * 1e6, sw::bench::median(their_times) / repetitions * 1e6,
              sw::bench::median(ratios), sw::bench::median(differences) * 1e6);
}

}  // namespace

int main(int argc, char* argv[]) {
  const auto mpi = sw::mpi::make_group(&argc, &argv);  // keeps MPI initialised
  for (const int count : {1, 1000, 1'000'000}) {
    const auto group = sw::mpi::make_group(&argc, &argv);
    std::int64_t step = 0;
    group->form({.time = sw::system_clock(), .stop = {}, .until = sw::clock::time_point::max()},
                {.running_step = [&] { return std::optional(step); }, .stop = {}});
    measure(*group, step, count);
  }
}
