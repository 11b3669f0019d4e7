// SPDX-License-Identifier: Apache-2.0
//
// The main loop of every stress program: rounds from one printed seed until the time is up, with a watchdog for rounds
// that hang.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <stop_token>
#include <thread>

namespace stepwell::test {

/// A watchdog that aborts the program if a round hangs. The core dump shows the place.
class watchdog {
public:
  explicit watchdog(std::uint64_t seed) : seed_(seed), thread_([this](const std::stop_token& stop) { watch(stop); }) {}
  void begin(std::uint64_t round) {
    const std::lock_guard lock(mutex_);
    round_ = round;
    begun_ = steady::now();
  }

private:
  using steady = std::chrono::steady_clock;
  static constexpr auto round_limit = std::chrono::seconds(120);  // a round takes milliseconds, but the machine may be busy

  void watch(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, stop, std::chrono::milliseconds(200), [&] { return stop.stop_requested(); })) {
      if (steady::now() - begun_ < round_limit) { continue; }
      std::fprintf(stderr, "round %llu hangs; STEPWELL_STRESS_SEED=%llu\n", static_cast<unsigned long long>(round_),
                   static_cast<unsigned long long>(seed_));
      std::abort();
    }
  }

  std::uint64_t seed_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::uint64_t round_ = 0;
  steady::time_point begun_ = steady::now();
  std::jthread thread_;
};

inline std::uint64_t stress_setting(const char* name, std::uint64_t otherwise) {
  const char* given = std::getenv(name);
  return given == nullptr ? otherwise : std::strtoull(given, nullptr, 10);
}

/// Calls `run_round(seed, round)`, which throws for a broken promise, until the time is up. Returns the exit code of
/// the program.
template<class RunRound>
int run_rounds(RunRound&& run_round) {
  using steady = std::chrono::steady_clock;
  const auto seed = stress_setting("STEPWELL_STRESS_SEED", static_cast<std::uint64_t>(steady::now().time_since_epoch().count()));
  const auto seconds = stress_setting("STEPWELL_STRESS_SECONDS", 3);
  std::printf("STEPWELL_STRESS_SEED=%llu STEPWELL_STRESS_SECONDS=%llu\n", static_cast<unsigned long long>(seed),
              static_cast<unsigned long long>(seconds));
  std::fflush(stdout);
  watchdog dog(seed);
  const auto until = steady::now() + std::chrono::seconds(seconds);
  std::uint64_t round = 0;
  for (; steady::now() < until; ++round) {
    dog.begin(round);
    try {
      run_round(seed, round);
    } catch (const std::exception& broken) {
      std::fprintf(stderr, "round %llu broke a promise: %s; STEPWELL_STRESS_SEED=%llu\n", static_cast<unsigned long long>(round),
                   broken.what(), static_cast<unsigned long long>(seed));
      return 1;
    }
  }
  std::printf("%llu rounds\n", static_cast<unsigned long long>(round));
  return 0;
}

}  // namespace stepwell::test
