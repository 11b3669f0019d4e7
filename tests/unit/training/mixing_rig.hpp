// SPDX-License-Identifier: Apache-2.0
//
// A model that shows each difference of its data, and sources of shuffled numbers, for tests of resumed runs.
#pragma once

#include <stepwell/base/variable.hpp>
#include <stepwell/data/prefetch.hpp>
#include <stepwell/data/shuffled_batches.hpp>

#include <cstddef>
#include <cstdint>
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

}  // namespace stepwell::test
