// SPDX-License-Identifier: Apache-2.0
//
// crc32c, compared with a table with one byte per look-up.
#include "bench/paired.hpp"

#include <stepwell/kernel/detail/crc32c.hpp>

#include <benchmark/benchmark.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace kernel = stepwell::kernel;

namespace {

constexpr auto table = [] {
  std::array<std::uint32_t, 256> made{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t state = byte;
    for (int bit = 0; bit < 8; ++bit) { state = (state >> 1) ^ ((state & 1) != 0 ? 0x82F63B78U : 0U); }
    made[byte] = state;
  }
  return made;
}();

std::uint32_t one_byte_a_lookup(std::span<const std::byte> bytes) {
  std::uint32_t state = ~std::uint32_t{0};
  for (const auto byte : bytes) { state = (state >> 8) ^ table[(state ^ std::to_integer<std::uint32_t>(byte)) & 0xFF]; }
  return ~state;
}

template<class Checksum>
void run(benchmark::State& state, Checksum checksum) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(state.range(0)));
  for (std::size_t i = 0; i < bytes.size(); ++i) { bytes[i] = static_cast<std::byte>(i * 7 + i / 256); }
  for ([[maybe_unused]] auto _ : state) { benchmark::DoNotOptimize(checksum(std::span<const std::byte>(bytes))); }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}

template<class Checksum>
void with_sizes(const std::string& name, Checksum checksum) {
  benchmark::RegisterBenchmark(name.c_str(), [checksum](benchmark::State& state) { run(state, checksum); })
      ->Arg(48)
      ->Arg(512)
      ->Arg(4 << 10)
      ->Arg(64 << 10)
      ->Arg(1 << 20);
}

const bool is_registered = [] {
  with_sizes("crc32c/one_byte_table", one_byte_a_lookup);
  with_sizes("crc32c/isal", [](std::span<const std::byte> bytes) { return kernel::crc32c(bytes); });
  return true;
}();

/// Measures crc32c and the table over 64 KiB, alternating.
void crc32c_against_one_byte_table(benchmark::State& state) {
  const std::vector<std::byte> bytes(64 << 10, std::byte{0x5A});
  const auto time_of = [&](const auto& checksum, int rounds) {
    return stepwell::bench::seconds_of([&] {
             for (int i = 0; i < rounds; ++i) { benchmark::DoNotOptimize(checksum(std::span<const std::byte>(bytes))); }
           }) /
           rounds;
  };
  const auto times = stepwell::bench::run_pairs(
      state, "table", [&] { return time_of([](std::span<const std::byte> all) { return kernel::crc32c(all); }, 200); },
      [&] { return time_of(one_byte_a_lookup, 10); });
  state.counters["ratio"] = times.theirs / times.ours;
}
BENCHMARK(crc32c_against_one_byte_table)->Iterations(31)->UseManualTime()->Unit(benchmark::kMicrosecond);

}  // namespace
