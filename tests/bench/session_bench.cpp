// SPDX-License-Identifier: Apache-2.0
//
// The cost of a session for each step: nanoseconds more than the bare call. The model itself takes about one
// nanosecond.
#include "bench/paired.hpp"
#include "support/idle_hooks.hpp"

#include <stepwell/model/model_session.hpp>

#include <benchmark/benchmark.h>

namespace {

namespace sw = stepwell;

void bare_loop(benchmark::State& state) {
  sw::test::tiny_model model;
  for (auto _ : state) { benchmark::DoNotOptimize(model.step(0.5f)); }
}
BENCHMARK(bare_loop);

void run_without_hooks(benchmark::State& state) {
  sw::test::tiny_model model;
  sw::monitored_session session(model);
  for (auto _ : state) { benchmark::DoNotOptimize(session.run(0.5f)); }
}
BENCHMARK(run_without_hooks);

void run_with_six_idle_hooks(benchmark::State& state) {
  sw::test::tiny_model model;
  auto session = sw::test::session_with_six_idle_hooks(model);
  for (auto _ : state) { benchmark::DoNotOptimize(session.run(0.5f)); }
}
BENCHMARK(run_with_six_idle_hooks);

void steps_with_six_idle_hooks(benchmark::State& state) {
  sw::test::tiny_model model;
  auto session = sw::test::session_with_six_idle_hooks(model);
  sw::test::repeating_source source;
  auto steps = session.steps(source);
  auto next = steps.begin();
  for (auto _ : state) {
    benchmark::DoNotOptimize(&*next);
    ++next;
  }
}
BENCHMARK(steps_with_six_idle_hooks);

/// Measures a million runs with six idle hooks and a million bare steps, alternating.
void six_idle_hooks_against_bare_loop(benchmark::State& state) {
  constexpr int steps = 1'000'000;
  sw::test::tiny_model model;
  sw::test::tiny_model bare;
  auto session = sw::test::session_with_six_idle_hooks(model);
  const auto times = sw::bench::run_pairs(
      state, "bare",
      [&] {
        return sw::bench::seconds_of([&] {
          for (int i = 0; i < steps; ++i) { benchmark::DoNotOptimize(session.run(0.5f)); }
        });
      },
      [&] {
        return sw::bench::seconds_of([&] {
          for (int i = 0; i < steps; ++i) { benchmark::DoNotOptimize(bare.step(0.5f)); }
        });
      });
  state.counters["ratio"] = times.ours / times.theirs;
  state.counters["over_ns"] = (times.ours - times.theirs) * 1e9 / steps;
}
BENCHMARK(six_idle_hooks_against_bare_loop)->Iterations(31)->UseManualTime()->Unit(benchmark::kMillisecond);

}  // namespace
