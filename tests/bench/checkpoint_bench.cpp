// SPDX-License-Identifier: Apache-2.0
//
// The cost of a checkpoint: a save compared with a plain write and fsync of the same bytes, and the stall of the step
// (the capture of a snapshot) compared with one memcpy. Both are measured in alternating pairs in one run; `ratio` is
// the ratio of the medians.
#include "bench/paired.hpp"
#include "support/temporary_directory.hpp"

#include <stepwell/checkpoint/restore.hpp>
#include <stepwell/checkpoint/saver.hpp>
#include <stepwell/checkpoint/update_fence.hpp>
#include <stepwell/io/pool.hpp>

#include <benchmark/benchmark.h>

#include <fcntl.h>
#include <unistd.h>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <future>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace sw = stepwell;
using sw::bench::median;
using sw::bench::run_pairs;
using sw::bench::seconds_of;
using sw::test::temporary_directory;

namespace {

/// A model of this many bytes in eight variables.
struct model {
  std::vector<std::vector<float>> layers;
  std::vector<float> flat;  // the same number of bytes in one piece

  explicit model(std::size_t bytes) : layers(8, std::vector<float>(bytes / 8 / sizeof(float))), flat(bytes / sizeof(float)) {
    float value = 0;
    for (auto& layer : layers) {
      for (auto& weight : layer) { weight = value += 0.25f; }
    }
    for (auto& weight : flat) { weight = value += 0.25f; }
  }
  [[nodiscard]] sw::variable_list list() {
    sw::variable_list made;
    for (std::size_t i = 0; i < layers.size(); ++i) { made.emplace_back("layer_" + std::to_string(i) + "/weights", layers[i]); }
    return made;
  }
};

void write_plainly(const std::string& path, std::span<const float> values) {
  const int file = ::open(path.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0666);
  const auto bytes = std::as_bytes(values);
  for (std::size_t done = 0; done < bytes.size();) {
    const auto count = ::write(file, bytes.data() + done, bytes.size() - done);
    if (count <= 0) { std::abort(); }
    done += static_cast<std::size_t>(count);
  }
  if (::fsync(file) != 0 || ::close(file) != 0) { std::abort(); }
}

// Measures a complete save until it is durable: checksums, data, index, state file, each synced. The later deletion of
// the older checkpoint is not part of the ratio, nor is that of the plain file; `deleting_ms` reports it.
void save_against_write_and_fsync(benchmark::State& state) {
  const auto bytes = static_cast<std::size_t>(state.range(0)) << 20;
  const temporary_directory directory;
  model trained(bytes);
  sw::snapshot_pool pool(sw::snapshot_size(trained.list()), 1);
  sw::saver saver(directory / "run", {.max_to_keep = 1});
  std::int64_t step = 0;
  std::vector<double> deleting;
  const auto save = [&] {
    auto taken = sw::snapshot::capture(pool.acquire(), trained.list(), ++step);
    const double saving = seconds_of([&] { saver.save_and_wait(std::move(taken)); });
    deleting.push_back(seconds_of([&] { saver.drain(); }));
    return saving;
  };
  const auto write = [&] {
    const double taken = seconds_of([&] { write_plainly(directory / "plain", trained.flat); });
    ::unlink((directory / "plain").c_str());
    return taken;
  };
  save();
  write();
  const auto times = run_pairs(state, "write_fsync", save, write);
  state.counters["ratio"] = times.theirs / times.ours;  // ratio of the rates
  state.counters["deleting_ms"] = median(deleting) * 1e3;
}
BENCHMARK(save_against_write_and_fsync)->ArgName("MiB")->Arg(256)->Arg(16)->Iterations(9)->UseManualTime()->Unit(benchmark::kMillisecond);

// Measures the time for which a due save blocks the step while a buffer is free.
void stall_against_memcpy(benchmark::State& state) {
  const auto bytes = static_cast<std::size_t>(state.range(0)) << 20;
  model trained(bytes);
  const auto list = trained.list();
  sw::snapshot_pool pool(sw::snapshot_size(list), 2);
  std::vector<float> touched(trained.flat);
  const auto capture = [&] {
    return seconds_of([&] { benchmark::DoNotOptimize(sw::snapshot::capture(pool.acquire(), trained.list(), 1)); });
  };
  const auto copy = [&] {
    return seconds_of([&] {
      std::memcpy(touched.data(), trained.flat.data(), bytes);
      benchmark::DoNotOptimize(touched.data());
      benchmark::ClobberMemory();
    });
  };
  capture();
  copy();
  const auto times = run_pairs(state, "memcpy", capture, copy);
  state.counters["ratio"] = times.ours / times.theirs;
}
BENCHMARK(stall_against_memcpy)->ArgName("MiB")->Arg(16)->Arg(64)->Arg(256)->Iterations(31)->UseManualTime()->Unit(benchmark::kMillisecond);

/// Computes without access to memory, as a step does whose data fits into the caches.
void compute_for(double seconds) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  double value = 1;
  while (std::chrono::steady_clock::now() < until) {
    for (int i = 0; i < 1000; ++i) { value = value * 0.999 + 0.001; }
    benchmark::DoNotOptimize(value);
  }
}

// Measures the time for which a due save blocks a step that waits at an `update_fence`, and whose gradients take four times as long as one
// memcpy: the capture, and the wait at the fence.
void stall_with_fence_against_memcpy(benchmark::State& state) {
  const auto bytes = static_cast<std::size_t>(state.range(0)) << 20;
  model trained(bytes);
  sw::snapshot_pool pool(sw::snapshot_size(trained.list()), 1);
  sw::io::pool background(1);
  std::vector<float> touched(trained.flat);
  const auto copy = [&] {
    return seconds_of([&] {
      std::memcpy(touched.data(), trained.flat.data(), bytes);
      benchmark::DoNotOptimize(touched.data());
      benchmark::ClobberMemory();
    });
  };
  copy();
  const double computing = 4 * copy();
  const auto save = [&] {
    sw::update_fence fence;
    std::optional<sw::snapshot> taken;
    std::promise<void> written;
    const double capturing = seconds_of([&] {
      taken = sw::snapshot::capture(*pool.try_acquire(), trained.list(), 1, fence);
      background.post([&] {
        taken->complete();
        written.set_value();
      });
    });
    compute_for(computing);
    const double waiting = seconds_of([&] { fence.wait(); });
    written.get_future().wait();
    return capturing + waiting;
  };
  save();
  const auto times = run_pairs(state, "memcpy", save, copy);
  state.counters["ratio"] = times.ours / times.theirs;
}
BENCHMARK(stall_with_fence_against_memcpy)
    ->ArgName("MiB")
    ->Arg(16)
    ->Arg(64)
    ->Arg(256)
    ->Iterations(31)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

// Measures verification and restore with all files in the page cache.
void restore_newest(benchmark::State& state) {
  const auto bytes = static_cast<std::size_t>(state.range(0)) << 20;
  const temporary_directory directory;
  model trained(bytes);
  const auto list = trained.list();
  sw::saver saver(directory.path());
  sw::snapshot_pool pool(sw::snapshot_size(list), 1);
  saver.save_and_wait(sw::snapshot::capture(pool.acquire(), list, 1));
  for ([[maybe_unused]] auto _ : state) { benchmark::DoNotOptimize(sw::restore(list, *saver.restore_newest())); }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(bytes));
}
BENCHMARK(restore_newest)->ArgName("MiB")->Arg(256)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
