// SPDX-License-Identifier: Apache-2.0
//
// The histogram of an xtensor expression of a million floats, compared with its parts: the histogram of a container of the values, and the
// evaluation of the expression, once, into a buffer of one block, block after block. `x_parts` is the time divided by that of both parts. An
// eager summary, which evaluates the expression into a container first, is compared, too.
#include <stepwell/xtensor/xtensor.hpp>

#include "bench/paired.hpp"

#include <stepwell/kernel/detail/statistics.hpp>

#if __has_include(<xtensor/core/xmath.hpp>)
#include <xtensor/core/xmath.hpp>
#include <xtensor/core/xnoalias.hpp>
#else
#include <xtensor/xmath.hpp>
#include <xtensor/xnoalias.hpp>
#endif

#include <benchmark/benchmark.h>

#include <cstddef>
#include <random>
#include <span>

namespace kernel = stepwell::kernel;

namespace {

using vector = xt::xtensor<float, 1>;
constexpr std::size_t count = 1'000'000;
constexpr std::size_t block = 4096;  // floats
constexpr float rate = 0.1F;

vector normal_values() {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  vector values(std::array<std::size_t, 1>{count});
  for (auto& value : values) { value = normal(random); }
  return values;
}

/// `make(values)` returns the histogram of a lazy view or of a span.
template<class Make>
void histogram_of_expression(benchmark::State& state, Make make) {
  const vector gradient = normal_values();
  const vector values = rate * gradient;
  vector buffer(std::array<std::size_t, 1>{block});
  const auto lazy = [&] {
    const auto update = rate * gradient;
    benchmark::DoNotOptimize(make(stepwell::lazy_view(update)));
  };
  const auto parts = [&] {
    benchmark::DoNotOptimize(make(std::span<const float>(values.data(), values.size())));
    for (std::size_t first = 0; first + block <= count; first += block) {
      const auto some = xt::adapt(gradient.data() + first, block, xt::no_ownership(), std::array<std::size_t, 1>{block});
      xt::noalias(buffer) = rate * some;
      benchmark::DoNotOptimize(buffer.data());
      benchmark::ClobberMemory();
    }
  };
  const auto eager = [&] {
    const vector update = rate * gradient;
    benchmark::DoNotOptimize(make(std::span<const float>(update.data(), update.size())));
  };
  using stepwell::bench::seconds_of;
  std::vector<double> eager_times;
  const auto times = stepwell::bench::run_pairs(
      state, "parts",
      [&] {
        eager_times.push_back(seconds_of(eager));
        return seconds_of(lazy);
      },
      [&] { return seconds_of(parts); });
  state.counters["eager_ms"] = stepwell::bench::median(eager_times) * 1e3;
  state.counters["x_parts"] = times.ours / times.theirs;
}

void simple(benchmark::State& state) {
  histogram_of_expression(state, [](const auto& values) { return kernel::make_growing_histogram(values); });
}
void tensor(benchmark::State& state) {
  histogram_of_expression(state, [](const auto& values) { return kernel::make_equal_histogram(values); });
}
BENCHMARK(simple)->Iterations(101)->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK(tensor)->Iterations(101)->UseManualTime()->Unit(benchmark::kMillisecond);

}  // namespace
