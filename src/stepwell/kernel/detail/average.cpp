// SPDX-License-Identifier: Apache-2.0
#include "stepwell/kernel/detail/average.hpp"

#include <cassert>
#include <cstddef>
#include <xsimd/xsimd.hpp>

namespace stepwell::kernel {
namespace {

template<class T>
void move_all(std::span<T> averages, std::span<const T> values, T weight) noexcept {
  assert(averages.size() == values.size());
  using batch = xsimd::batch<T>;
  const std::size_t whole = values.size() - values.size() % batch::size;
  const batch weights(weight);
  for (std::size_t i = 0; i < whole; i += batch::size) {
    const auto average = batch::load_unaligned(&averages[i]);
    const auto moved = average + weights * (batch::load_unaligned(&values[i]) - average);
    moved.store_unaligned(&averages[i]);
  }
  for (std::size_t i = whole; i < values.size(); ++i) { averages[i] += weight * (values[i] - averages[i]); }
}

}  // namespace

void move_towards(std::span<float> averages, std::span<const float> values, float weight) noexcept { move_all(averages, values, weight); }
void move_towards(std::span<double> averages, std::span<const double> values, double weight) noexcept {
  move_all(averages, values, weight);
}

}  // namespace stepwell::kernel
