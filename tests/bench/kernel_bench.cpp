// SPDX-License-Identifier: Apache-2.0
//
// The numeric kernels with the instructions that were selected at run time, compared with the same source compiled with -march=native, with a
// plain loop at -O3, with expressions of Eigen and xtensor, and with a read of the same bytes. All of them take turns. Each reported time is
// that of the fastest turn, because other programs make a turn only slower. A ratio is the time of the other one divided by ours.
#include <stepwell/xtensor/xtensor_fix.hpp>

#include "bench/kernel_native.hpp"
#include "bench/timing.hpp"

#include <stepwell/base/tensor.hpp>
#include <stepwell/kernel/detail/statistics.hpp>

#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <iterator>
#include <limits>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>
#if defined(STEPWELL_BENCH_EIGEN)
#include <Eigen/Core>
#endif
#if defined(STEPWELL_BENCH_XTENSOR)
#include <xtensor/xadapt.hpp>
#include <xtensor/xmath.hpp>
#include <xtensor/xnoalias.hpp>
#include <xtensor/xsort.hpp>
#endif

namespace bench = stepwell::bench;
namespace kernel = stepwell::kernel;

namespace {

using floats = std::vector<float>;

struct contender {
  std::string name;
  std::function<void()> run;
};

floats normal_values(std::size_t size) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, 0.05F);
  floats values(size);
  for (auto& value : values) { value = normal(random); }
  return values;
}

/// Measures the contenders in turns. The first one is ours.
void measure(benchmark::State& state, std::size_t values, std::size_t bytes, const std::vector<contender>& all) {
  constexpr double turn = 100e-6;
  std::vector<double> best(all.size(), std::numeric_limits<double>::infinity());
  std::vector<int> rounds;
  for (const auto& one : all) {
    one.run();  // also reads the memory for the first time
    rounds.push_back(std::max(1, static_cast<int>(turn / bench::seconds_of(one.run))));
  }
  int turns = 0;
  for ([[maybe_unused]] auto _ : state) {
    ++turns;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (turns > 3 && best[i] > 20 * best[0]) { continue; }  // a slow one needs no exact time
      const auto time = bench::seconds_of([&] {
        for (int round = 0; round < rounds[i]; ++round) { all[i].run(); }
      });
      best[i] = std::min(best[i], time / rounds[i]);
    }
    state.SetIterationTime(best[0]);
  }
  state.counters["values/s"] = static_cast<double>(values) / best[0];
  state.counters["GB/s"] = static_cast<double>(bytes) / best[0] / 1e9;
  for (std::size_t i = 1; i < all.size(); ++i) { state.counters["x_" + all[i].name] = best[i] / best[0]; }
  state.SetLabel(kernel::simd().name);
}

/// Registers a benchmark for arrays of 512 bytes, 32 KiB, 1 MiB and 64 MiB. `make(bytes)` returns the contenders, which own their data.
template<class Make>
void with_sizes(const std::string& name, std::size_t size_of_value, Make make) {
  const auto run = [size_of_value, make](benchmark::State& state) {
    const auto bytes = static_cast<std::size_t>(state.range(0));
    measure(state, bytes / size_of_value, bytes, make(bytes / size_of_value));
  };
  for (const std::int64_t bytes : {512, 32 << 10, 1 << 20, 64 << 20}) {
    benchmark::RegisterBenchmark(name.c_str(), run)->Arg(bytes)->Iterations(60)->UseManualTime()->Unit(benchmark::kMicrosecond);
  }
}

template<class T>
contender reading(const std::shared_ptr<std::vector<T>>& values) {
  return {"read", [values] { benchmark::DoNotOptimize(bench::read_all(std::as_bytes(std::span(*values)))); }};
}

/// Registers a kernel that has one array of floats and returns a result. `call(kernels, values)` calls it.
template<class T, class Call, class Plain>
void with_array(const std::string& name, Call call, Plain plain,
                std::function<std::vector<contender>(std::shared_ptr<std::vector<T>>)> others = {}) {
  with_sizes(name, sizeof(T), [=](std::size_t size) {
    const auto made = normal_values(size);
    const auto values = std::make_shared<std::vector<T>>(made.begin(), made.end());
    std::vector<contender> all = {{"ours", [=] { benchmark::DoNotOptimize(call(kernel::simd(), *values)); }},
                                  {"native", [=] { benchmark::DoNotOptimize(call(bench::native_kernels, *values)); }},
                                  {"plain", [=] { benchmark::DoNotOptimize(plain(*values)); }},
                                  reading(values)};
    if (others) { std::ranges::copy(others(values), std::back_inserter(all)); }
    return all;
  });
}

#if defined(STEPWELL_BENCH_EIGEN)
auto eigen(const floats& values) { return Eigen::Map<const Eigen::ArrayXf>(values.data(), static_cast<Eigen::Index>(values.size())); }
#endif
#if defined(STEPWELL_BENCH_XTENSOR)
auto xtensor(const floats& values) { return xt::adapt(values, std::array<std::size_t, 1>{values.size()}); }
#endif

template<class T>
kernel::simd_moments plain_moments(const std::vector<T>& values) {
  kernel::simd_moments all{std::numeric_limits<double>::max(), std::numeric_limits<double>::lowest(), 0, 0, 0};
  for (const T one : values) {
    if (!std::isfinite(one)) { continue; }
    const auto value = static_cast<double>(one);
    all.min = std::min(all.min, value);
    all.max = std::max(all.max, value);
    all.sum += value;
    all.sum_squares += value * value;
    ++all.count;
  }
  return all;
}

void register_tests() {
  with_array<float>(
      "all_finite", [](const auto& set, const floats& values) { return set.floats.all_finite(values.data(), values.size()); },
      [](const floats& values) { return std::ranges::all_of(values, [](float value) { return std::isfinite(value); }); },
      [](const std::shared_ptr<floats>& values) {
        std::vector<contender> all;
#if defined(STEPWELL_BENCH_EIGEN)
        all.push_back({"eigen", [=] { benchmark::DoNotOptimize(eigen(*values).isFinite().all()); }});
#endif
#if defined(STEPWELL_BENCH_XTENSOR)
        all.push_back({"xtensor", [=] { benchmark::DoNotOptimize(xt::all(xt::isfinite(xtensor(*values)))); }});
#endif
        return all;
      });
  with_array<float>(
      "any_nan", [](const auto& set, const floats& values) { return set.floats.any_nan(values.data(), values.size()); },
      [](const floats& values) { return std::ranges::any_of(values, [](float value) { return std::isnan(value); }); });
  with_array<std::uint16_t>(
      "all_finite of half", [](const auto& set, const auto& bits) { return set.magnitudes_at_most(bits.data(), bits.size(), 0x7bff); },
      [](const std::vector<std::uint16_t>& bits) {
        return std::ranges::all_of(bits, [](std::uint16_t one) { return (one & 0x7fff) <= 0x7bff; });
      });
}

void register_sums() {
  with_array<float>(
      "sum", [](const auto& set, const floats& values) { return set.floats.sum(values.data(), values.size()); },
      [](const floats& values) {
        double sum = 0;
        for (const float value : values) { sum += static_cast<double>(value); }
        return sum;
      },
      [](const std::shared_ptr<floats>& values) {
        std::vector<contender> all;
#if defined(STEPWELL_BENCH_EIGEN)
        all.push_back({"eigen", [=] { benchmark::DoNotOptimize(eigen(*values).cast<double>().sum()); }});
#endif
#if defined(STEPWELL_BENCH_XTENSOR)
        all.push_back({"xtensor", [=] { benchmark::DoNotOptimize(xt::sum<double>(xtensor(*values))()); }});
#endif
        return all;
      });
  with_array<float>(
      "moments", [](const auto& set, const floats& values) { return set.floats.moments(values.data(), values.size()); },
      plain_moments<float>);
  with_array<double>(
      "moments of doubles",
      [](const auto& set, const std::vector<double>& values) { return set.doubles.moments(values.data(), values.size()); },
      plain_moments<double>);
  with_array<float>(
      "argmax", [](const auto& set, const floats& values) { return set.argmax(values.data(), values.size()).index; },
      [](const floats& values) { return std::ranges::max_element(values) - values.begin(); },
      [](const std::shared_ptr<floats>& values) {
        std::vector<contender> all;
#if defined(STEPWELL_BENCH_EIGEN)
        all.push_back({"eigen", [=] {
                         Eigen::Index index = 0;
                         benchmark::DoNotOptimize(eigen(*values).maxCoeff(&index));
                         benchmark::DoNotOptimize(index);
                       }});
#endif
#if defined(STEPWELL_BENCH_XTENSOR)
        all.push_back({"xtensor", [=] { benchmark::DoNotOptimize(xt::argmax(xtensor(*values))()); }});
#endif
        return all;
      });
  with_array<float>(
      "count_greater", [](const auto& set, const floats& values) { return set.count_greater(values.data(), values.size(), 0.01F); },
      [](const floats& values) { return std::ranges::count_if(values, [](float value) { return value > 0.01F; }); });
  with_array<std::int64_t>(
      "count_equal",
      [](const auto& set, const auto& values) {
        return set.count_equal(values.data(), values.data() + values.size() / 2, values.size() / 2);
      },
      [](const std::vector<std::int64_t>& values) {
        std::size_t count = 0;
        for (std::size_t i = 0; i < values.size() / 2; ++i) { count += values[i] == values[i + values.size() / 2] ? 1 : 0; }
        return count;
      });
}

void register_histograms() {
  with_array<float>(
      "growing_buckets",
      [buckets = std::make_shared<std::vector<std::uint32_t>>(512)](const auto& set, const floats& values) {
        for (std::size_t i = 0; i < values.size(); i += 512) {
          set.floats.growing_buckets(values.data() + i, std::min<std::size_t>(512, values.size() - i),
                                     kernel::growing_entries<float>().data(), buckets->data());
        }
        return buckets->front();
      },
      [](const floats& values) {
        const auto limits = kernel::histogram_limits();
        std::size_t all = 0;
        for (const float value : values) {
          all ^= static_cast<std::size_t>(std::ranges::upper_bound(limits, static_cast<double>(value)) - limits.begin());
        }
        return all;
      });
  with_array<float>(
      "equal_buckets",
      [buckets = std::make_shared<std::vector<double>>(512)](const auto& set, const floats& values) {
        for (std::size_t i = 0; i < values.size(); i += 512) {
          set.floats.equal_buckets(values.data() + i, std::min<std::size_t>(512, values.size() - i), {-0.2, 0.4 / 30, 29}, buckets->data());
        }
        return buckets->front();
      },
      [](const floats& values) {
        double all = 0;
        for (const float value : values) { all += std::min(29.0, std::floor((static_cast<double>(value) / 2 + 0.2) / (0.4 / 30))); }
        return all;
      });
  const auto complete = [](const std::string& name, auto make) {
    with_sizes(name, sizeof(float), [=](std::size_t size) {
      const auto values = std::make_shared<floats>(normal_values(size));
      return std::vector<contender>{{"ours", [=] { benchmark::DoNotOptimize(make(std::span<const float>(*values))); }}, reading(values)};
    });
  };
  complete("make_growing_histogram", [](auto values) { return kernel::make_growing_histogram(values).stats.sum; });
  complete("make_equal_histogram", [](auto values) { return kernel::make_equal_histogram(values).stats.sum; });
}

void register_writers() {
  with_sizes("move_towards", sizeof(float), [](std::size_t size) {
    const auto values = std::make_shared<floats>(normal_values(size));
    const auto averages = std::make_shared<floats>(size);
    const auto move = [=](const kernel::simd_kernels& set) { set.floats.move_towards(averages->data(), values->data(), size, 0.01F); };
    std::vector<contender> all = {{"ours", [=] { move(kernel::simd()); }},
                                  {"native", [=] { move(bench::native_kernels); }},
                                  {"plain",
                                   [=] {
                                     for (std::size_t i = 0; i < size; ++i) { (*averages)[i] += 0.01F * ((*values)[i] - (*averages)[i]); }
                                     benchmark::ClobberMemory();
                                   }},
                                  {"memcpy", [=] {
                                     std::memcpy(averages->data(), values->data(), size * sizeof(float));
                                     benchmark::ClobberMemory();
                                   }}};
#if defined(STEPWELL_BENCH_EIGEN)
    all.push_back({"eigen", [=] {
                     Eigen::Map<Eigen::ArrayXf> target(averages->data(), static_cast<Eigen::Index>(size));
                     target += 0.01F * (eigen(*values) - target);
                     benchmark::ClobberMemory();
                   }});
#endif
#if defined(STEPWELL_BENCH_XTENSOR)
    all.push_back({"xtensor", [=] {
                     auto target = xt::adapt(*averages, std::array<std::size_t, 1>{size});
                     xt::noalias(target) += 0.01F * (xtensor(*values) - target);
                     benchmark::ClobberMemory();
                   }});
#endif
    return all;
  });
  with_sizes("half_to_float", sizeof(std::uint16_t), [](std::size_t size) {
    const auto bits = std::make_shared<std::vector<std::uint16_t>>(size);
    for (std::size_t i = 0; i < size; ++i) { (*bits)[i] = static_cast<std::uint16_t>(i * 2654435761U >> 9); }
    const auto values = std::make_shared<floats>(size);
    return std::vector<contender>{{"ours", [=] { kernel::simd().half_to_float(bits->data(), size, values->data()); }},
                                  {"native", [=] { bench::native_kernels.half_to_float(bits->data(), size, values->data()); }},
                                  {"plain", [=] { std::ranges::transform(*bits, values->begin(), stepwell::detail::half_number); }},
                                  reading(bits)};
  });
}

const bool is_registered = [] {
  register_tests();
  register_sums();
  register_histograms();
  register_writers();
  return true;
}();

}  // namespace
