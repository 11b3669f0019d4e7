// SPDX-License-Identifier: Apache-2.0
//
// The cost of a checkpoint: a save compared with a plain write and fsync of the same bytes, the stall of the step (the
// capture of a snapshot) compared with one memcpy, and a restore compared with a plain read of the same file. All are
// measured in alternating pairs in one run; `ratio` is the ratio of the medians. And the time and the memory of a
// checkpoint of many small variables.
#include "bench/memory.hpp"
#include "bench/paired.hpp"
#include "support/temporary_directory.hpp"

#include <stepwell/checkpoint/restore.hpp>
#include <stepwell/checkpoint/saver.hpp>
#include <stepwell/checkpoint/update_fence.hpp>
#include <stepwell/io/pool.hpp>

#include <benchmark/benchmark.h>

#include <fcntl.h>
#include <malloc.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
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

/// Copies all bytes of a model with one memcpy.
class one_memcpy {
public:
  explicit one_memcpy(const model& of) : from_(of.flat), to_(of.flat) {}

  /// Returns the time of a copy in seconds.
  double operator()() {
    return seconds_of([this] {
      std::memcpy(to_.data(), from_.data(), to_.size() * sizeof(float));
      benchmark::DoNotOptimize(to_.data());
      benchmark::ClobberMemory();
    });
  }

private:
  std::span<const float> from_;
  std::vector<float> to_;
};

/// Measures the time for which a due save blocks the step while a buffer is free. Idle threads of `helpers`, if not null, copy, too.
void measure_stall(benchmark::State& state, sw::io::pool* helpers) {
  model trained(static_cast<std::size_t>(state.range(0)) << 20);
  sw::snapshot_pool pool(sw::snapshot_size(trained.list()), 2);
  one_memcpy copy(trained);
  const auto capture = [&] {
    return seconds_of([&] { benchmark::DoNotOptimize(sw::snapshot::capture(pool.acquire(), trained.list(), 1, helpers)); });
  };
  capture();
  copy();
  const auto times = run_pairs(state, "memcpy", capture, std::ref(copy));
  state.counters["ratio"] = times.ours / times.theirs;
}
void stall_against_memcpy(benchmark::State& state) { measure_stall(state, nullptr); }
BENCHMARK(stall_against_memcpy)->ArgName("MiB")->Arg(16)->Arg(64)->Arg(256)->Iterations(31)->UseManualTime()->Unit(benchmark::kMillisecond);
void stall_with_helpers_against_memcpy(benchmark::State& state) { measure_stall(state, sw::io::pool::shared().get()); }
BENCHMARK(stall_with_helpers_against_memcpy)
    ->ArgName("MiB")
    ->Arg(16)
    ->Arg(64)
    ->Arg(256)
    ->Iterations(31)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

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
  model trained(static_cast<std::size_t>(state.range(0)) << 20);
  sw::snapshot_pool pool(sw::snapshot_size(trained.list()), 1);
  sw::io::pool background(1);
  one_memcpy copy(trained);
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
  const auto times = run_pairs(state, "memcpy", save, std::ref(copy));
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

/// The only data file of a checkpoint.
std::string data_file(const std::string& prefix) { return prefix + ".data-00000-of-00001"; }

/// Reads a file into some buffers, one after another, in pieces of 4 MiB. Returns the time in seconds.
double read_plainly(const std::string& path, std::span<const std::span<std::byte>> buffers, int flags) {
  const int file = ::open(path.c_str(), O_RDONLY | flags);
  if (file < 0) { std::abort(); }
  constexpr std::size_t piece = std::size_t{4} << 20;
  const double seconds = seconds_of([&] {
    for (const auto into : buffers) {
      for (std::size_t done = 0; done < into.size();) {
        const auto count = ::read(file, into.data() + done, std::min(piece, into.size() - done));
        if (count <= 0) { break; }
        done += static_cast<std::size_t>(count);
      }
    }
  });
  ::close(file);
  return seconds;
}

/// Removes a file from the cache of the system.
void drop_from_cache(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY);
  if (file < 0 || ::fsync(file) != 0 || ::posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED) != 0) { std::abort(); }
  ::close(file);
}

/// Memory of whole pages, for reads that bypass the cache.
struct page_memory {
  explicit page_memory(std::size_t size)
      : bytes(static_cast<std::byte*>(std::aligned_alloc(4096, (size + 4095) / 4096 * 4096)), &std::free), size(size) {
    std::memset(bytes.get(), 1, size);
  }
  std::unique_ptr<std::byte[], void (*)(void*)> bytes;
  std::size_t size;
};

// Measures the restore of a checkpoint, one pass with checksums into the variables of a model, against a plain read of its
// data file. With the file in the cache of the system, the plain read reads into the same variables. With the file dropped
// from the cache, it reads past the cache into aligned memory of the same size, like dd with iflag=direct and bs=4M.
void restore_against_read(benchmark::State& state) {
  const auto bytes = static_cast<std::size_t>(state.range(0)) << 20;
  const bool is_cold = state.range(1) != 0;
  const temporary_directory directory;
  model trained(bytes);
  const auto list = trained.list();
  std::string prefix;
  {
    sw::saver saver(directory.path());
    sw::snapshot_pool pool(sw::snapshot_size(list), 1);
    prefix = saver.save_and_wait(sw::snapshot::capture(pool.acquire(), list, 1)).prefix;
  }
  const page_memory memory(is_cold ? bytes : 0);
  std::vector<std::span<std::byte>> buffers;
  if (is_cold) {
    buffers.emplace_back(memory.bytes.get(), memory.size);
  } else {
    for (const auto& variable : list) { buffers.push_back(variable.writable_bytes()); }
  }
  const auto restore = [&] {
    if (is_cold) { drop_from_cache(data_file(prefix)); }
    return seconds_of([&] {
      const sw::checkpoint_reader reader(prefix);
      benchmark::DoNotOptimize(sw::restore(list, reader, {.verify_first = false}));
    });
  };
  const auto read = [&] {
    if (is_cold) { drop_from_cache(data_file(prefix)); }
    return read_plainly(data_file(prefix), buffers, is_cold ? O_DIRECT : 0);
  };
  restore();
  read();
  const auto times = run_pairs(state, is_cold ? "direct_read" : "read", restore, read);
  state.counters["ratio"] = times.theirs / times.ours;  // ratio of the rates
}
BENCHMARK(restore_against_read)
    ->ArgNames({"MiB", "cold"})
    ->ArgsProduct({{16, 256, 1024}, {0, 1}})
    ->Iterations(9)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

/// Returns the most memory that an action needed at once, besides the memory at its start.
std::size_t peak_of(const std::function<void()>& action) {
  ::malloc_trim(0);
  stepwell::bench::reset_peak_memory();
  const auto before = stepwell::bench::status_bytes("VmRSS:");
  action();
  const auto peak = stepwell::bench::status_bytes("VmHWM:");
  return peak > before ? peak - before : 0;
}

/// A model of many variables of 16 bytes.
struct many_variables {
  std::vector<std::array<float, 4>> values;

  explicit many_variables(std::size_t count) : values(count) {
    for (std::size_t i = 0; i < count; ++i) { values[i].fill(static_cast<float>(i)); }
  }
  [[nodiscard]] sw::variable_list list() {
    sw::variable_list made;
    made.reserve(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      made.emplace_back("part_" + std::to_string(i % 1000) + "/weights_" + std::to_string(i), values[i]);
    }
    return made;
  }
};

// Measures a save until durable and a restore of many small variables, and the memory that they take for each variable.
// The list of the variables is not included; `list_bytes` reports it. `with_verify` also checks all tensors before.
void many_small_variables(benchmark::State& state) {
  const auto count = static_cast<std::size_t>(state.range(0));
  const temporary_directory directory;
  many_variables trained(count);
  const auto each = [count](std::size_t bytes) { return static_cast<double>(bytes) / static_cast<double>(count); };
  sw::variable_list list;
  state.counters["list_bytes"] = each(peak_of([&] { list = trained.list(); }));
  std::vector<double> capturing, saving, restoring, verifying;
  std::size_t save_peak = 0;
  std::size_t restore_peak = 0;
  std::int64_t step = 0;
  for ([[maybe_unused]] auto _ : state) {
    std::string prefix;
    const auto save = [&] {
      auto pool = sw::snapshot_pool::on_demand(1, sw::system_clock());
      sw::saver saver(directory.path(), {.max_to_keep = 1});
      std::optional<sw::snapshot> taken;
      capturing.push_back(seconds_of([&] { taken = sw::snapshot::capture(pool.acquire(), list, ++step); }));
      saving.push_back(seconds_of([&] { prefix = saver.save_and_wait(std::move(*taken)).prefix; }));
    };
    save_peak = std::max(save_peak, peak_of(save));
    const auto restore = [&] {
      restoring.push_back(seconds_of([&] {
        const sw::checkpoint_reader reader(prefix);
        benchmark::DoNotOptimize(sw::restore(list, reader, {.verify_first = false}));
      }));
    };
    restore_peak = std::max(restore_peak, peak_of(restore));
    verifying.push_back(seconds_of([&] { sw::checkpoint_reader(prefix).verify(); }));
  }
  state.counters["capture_s"] = median(capturing);
  state.counters["save_s"] = median(saving);
  state.counters["restore_s"] = median(restoring);
  state.counters["open_and_verify_s"] = median(verifying);
  state.counters["save_bytes"] = each(save_peak);
  state.counters["restore_bytes"] = each(restore_peak);
}
BENCHMARK(many_small_variables)->Arg(1'000'000)->Iterations(5)->Unit(benchmark::kMillisecond)->UseRealTime();

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
