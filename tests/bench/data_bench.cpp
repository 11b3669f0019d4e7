// SPDX-License-Identifier: Apache-2.0
//
// Loops over a slow source, with and without reading ahead: `ratio` is the time with threads divided by the time without. The source waits
// (as for a disk), so the result does not depend on the number of processors. And the cost of a batch that is ready.
#include "bench/paired.hpp"

#include <stepwell/data/prefetch.hpp>
#include <stepwell/data/source.hpp>
#include <stepwell/model/model_session.hpp>

#include <benchmark/benchmark.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <thread>

namespace sw = stepwell;
namespace data = stepwell::data;

namespace {

constexpr std::uint64_t batches = 200;
constexpr auto time_to_read = std::chrono::milliseconds(2);
constexpr auto time_to_learn = std::chrono::milliseconds(1);

struct slow_model {
  std::uint64_t sum = 0;
  void step(std::uint64_t number) {
    std::this_thread::sleep_for(time_to_learn);
    sum += number;
  }
  sw::variable_list variables() { return sw::variables({{"sum", sum}}); }
};

std::uint64_t read_slowly(std::uint64_t number) {
  std::this_thread::sleep_for(time_to_read);
  return number;
}

double train(auto source) {
  slow_model model;
  sw::monitored_session session(model);
  return sw::bench::seconds_of([&] { session.run_all(source); });
}

void slow_source(benchmark::State& state) {
  const auto threads = static_cast<std::size_t>(state.range(0));
  const auto numbers = [] { return data::counter({.count = batches}); };
  const auto times = sw::bench::run_pairs(
      state, "in_the_loop", [&] { return train(data::parallel_map(numbers(), read_slowly, {.threads = threads, .depth = 8})); },
      [&] { return train(data::transform(numbers(), read_slowly)); });
  state.counters["ratio"] = times.ours / times.theirs;
}
BENCHMARK(slow_source)->Arg(1)->Arg(2)->Arg(4)->UseManualTime()->Unit(benchmark::kMillisecond)->Iterations(5);

// Measures a batch that was made before the consumer asks: two locks.
void ready_batch(benchmark::State& state) {
  auto source = data::prefetch(data::counter(), {.depth = 64});
  for ([[maybe_unused]] auto _ : state) {
    benchmark::DoNotOptimize(source.peek());
    source.advance();
  }
}
BENCHMARK(ready_batch);

}  // namespace
