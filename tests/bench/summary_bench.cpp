// SPDX-License-Identifier: Apache-2.0
//
// The cost of an event for the step, and the throughput of events to the file, with producer and writing task together.
#include "support/temporary_directory.hpp"

#include <stepwell/summary/writer.hpp>

#include <benchmark/benchmark.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

namespace format = stepwell::format;
namespace summary = stepwell::summary;
using stepwell::test::temporary_directory;

namespace {

constexpr std::int64_t many = 1'000'000;

summary::writer_options options_of(benchmark::State& state) {
  summary::writer_options options;
  options.style = state.range(0) == 0 ? format::summary_style::simple : format::summary_style::tensor;
  return options;
}

void label(benchmark::State& state) { state.SetLabel(state.range(0) == 0 ? "simple_value" : "tensor"); }

// Measures a million scalars from the first call until `close` has returned, when all of them are written and synced.
void scalars_reach_the_file(benchmark::State& state) {
  for ([[maybe_unused]] auto _ : state) {
    state.PauseTiming();
    const temporary_directory directory;
    std::optional<summary::writer> writer;
    writer.emplace(directory.path(), options_of(state));
    state.ResumeTiming();
    for (std::int64_t step = 1; step <= many; ++step) { writer->add_scalar("train/loss", 0.5F, step); }
    writer->close();
    state.PauseTiming();
    state.counters["bytes"] = static_cast<double>(std::filesystem::file_size(writer->path()));
    writer.reset();
    state.ResumeTiming();
  }
  state.SetItemsProcessed(state.iterations() * many);
  label(state);
}
BENCHMARK(scalars_reach_the_file)->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond)->UseRealTime()->MeasureProcessCPUTime();

// Measures one scalar from the point of view of the step.
void one_scalar(benchmark::State& state) {
  const temporary_directory directory;
  summary::writer writer(directory.path(), options_of(state));
  std::int64_t step = 0;
  for ([[maybe_unused]] auto _ : state) { writer.add_scalar("train/loss", 0.5F, ++step); }
  state.SetItemsProcessed(state.iterations());
  label(state);
}
BENCHMARK(one_scalar)->Arg(0)->Arg(1)->Iterations(many);

void one_histogram(benchmark::State& state) {
  const temporary_directory directory;
  summary::writer writer(directory.path(), options_of(state));
  std::vector<float> values(100'000);
  for (std::size_t i = 0; i < values.size(); ++i) { values[i] = static_cast<float>(i * 2654435761U % 1000) - 500; }
  std::int64_t step = 0;
  for ([[maybe_unused]] auto _ : state) { writer.add_histogram("weights", std::span<const float>(values), ++step); }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(values.size()));
  label(state);
}
BENCHMARK(one_histogram)->Arg(0)->Arg(1)->Unit(benchmark::kMicrosecond);

void one_image(benchmark::State& state) {
  const temporary_directory directory;
  summary::writer writer(directory.path(), options_of(state));
  std::vector<std::byte> pixels(256 * 256 * 3);
  for (std::size_t i = 0; i < pixels.size(); ++i) {
    pixels[i] = static_cast<std::byte>(i / 768 + i % 768 / 3 + i * 2654435761U % 8);  // smooth with a little noise
  }
  std::int64_t step = 0;
  for ([[maybe_unused]] auto _ : state) { writer.add_image("picture", {pixels, 256, 256, 3}, ++step); }
  label(state);
}
BENCHMARK(one_image)->Arg(0)->Unit(benchmark::kMillisecond);

}  // namespace
