// SPDX-License-Identifier: Apache-2.0
//
// A model that shows each difference of its data, sources of shuffled numbers, and checks, for tests of resumed runs.
#pragma once

#include "support/catch.hpp"
#include "support/temporary_directory.hpp"
#include "support/training_process.hpp"

#include <stepwell/base/clock.hpp>
#include <stepwell/base/variable.hpp>
#include <stepwell/data/prefetch.hpp>
#include <stepwell/data/shuffled_batches.hpp>
#include <stepwell/protocol/hook.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace stepwell::test {

/// A model whose state depends on the order of all numbers that it has seen.
struct mixing_model {
  std::uint64_t mixed = 1;
  void step(const std::vector<std::uint64_t>& batch) {
    for (const auto number : batch) { mixed = (mixed ^ number) * 0x100000001B3ULL; }
  }
  variable_list variables() { return stepwell::variables({{"mixed", mixed}}); }
};

inline std::vector<std::uint64_t> numbers(std::size_t count) {
  std::vector<std::uint64_t> all(count);
  std::iota(all.begin(), all.end(), std::uint64_t{0});
  return all;
}

inline auto shuffled(std::size_t size, std::uint64_t seed, std::string name = {}) {
  return data::shuffled_batches(numbers(size), {.batch_size = 4, .seed = seed, .name = std::move(name)});
}

/// Squares of shuffled numbers, made on threads.
inline auto squares() {
  const auto square = [](const std::vector<std::uint64_t>& batch) {
    auto made = batch;
    for (auto& number : made) { number *= number; }
    return made;
  };
  return data::parallel_map(data::prefetch(shuffled(23, 5), {.threads = 2, .depth = 3}), square, {.threads = 3, .depth = 5});
}

inline training_options saving_in(const std::string& directory, std::int64_t save_steps = 5) {
  return {.checkpoint_dir = directory,
          .saves = {.save_steps = save_steps, .saver = unsynced_saves()},
          .step_counter = {.every_n_steps = none},
          .retry = {.initial_backoff = 0}};
}

/// Checks that `train(directory, killed_at)` returns `expected` if an earlier call in the directory was killed after step 1, or after any
/// `stride`-th step from there, below `end`. A call that is not killed has a `killed_at` of 0.
template<class Train, class Result>
void check_resumed_after_kills(const Train& train, const Result& expected, std::int64_t end, std::int64_t stride = 1) {
  for (std::int64_t killed_at = 1; killed_at < end; killed_at += stride) {
    CAPTURE(killed_at);
    const temporary_directory directory;
    CHECK_THROWS_WITH(train(directory.path(), killed_at), "killed");
    CHECK(train(directory.path(), 0) == expected);
  }
}

/// Moves the clock before the other hooks are called.
struct ticking_hook {
  static constexpr auto phase = hook_phase::observe;
  std::shared_ptr<manual_clock> clock;
  stepwell::clock::duration tick;
  void before_run(auto& /*context*/) { clock->advance(tick); }
};

}  // namespace stepwell::test
