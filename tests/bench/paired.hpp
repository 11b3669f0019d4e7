// SPDX-License-Identifier: Apache-2.0
//
// Measures two actions in alternating pairs in one run, so that other load on the machine slows both. `ratio` is the
// ratio of the medians.
#pragma once

#include "bench/timing.hpp"

#include <benchmark/benchmark.h>

#include <functional>
#include <string>
#include <vector>

namespace stepwell::bench {

/// The median times of both actions, in seconds.
struct pair_of_times {
  double ours;
  double theirs;
};

/// Runs both actions and alternates the order. Each returns its time in seconds. The time of `ours` is the reported
/// one.
inline pair_of_times run_pairs(benchmark::State& state, const char* theirs_name, const std::function<double()>& ours,
                               const std::function<double()>& theirs) {
  std::vector<double> our_times;
  std::vector<double> their_times;
  for ([[maybe_unused]] auto _ : state) {
    const bool we_are_first = our_times.size() % 2 == 0;
    if (we_are_first) { our_times.push_back(ours()); }
    their_times.push_back(theirs());
    if (!we_are_first) { our_times.push_back(ours()); }
    state.SetIterationTime(our_times.back());
  }
  const pair_of_times medians{median(our_times), median(their_times)};
  state.counters["ours_ms"] = medians.ours * 1e3;
  state.counters[std::string(theirs_name) + "_ms"] = medians.theirs * 1e3;
  return medians;
}

}  // namespace stepwell::bench
