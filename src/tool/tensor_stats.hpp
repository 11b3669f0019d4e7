// SPDX-License-Identifier: Apache-2.0
//
// Statistics of the values of a tensor.
#pragma once

#include "stepwell/base/dtype.hpp"
#include "stepwell/checkpoint/checkpoint_reader.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace stepwell::tool {

/// Statistics of the finite values, and counts. The statistics are meaningless if there is no finite value.
struct tensor_stats {
  std::uint64_t count = 0;
  std::uint64_t nans = 0;
  std::uint64_t infinities = 0;
  double min = 0;
  double max = 0;
  double mean = 0;
  double stddev = 0;  ///< Of the whole population: the divisor is the number of values.

  [[nodiscard]] std::uint64_t finite() const noexcept { return count - nans - infinities; }

  /// Adds more elements. Does not overflow for any finite values.
  /// @pre The elements are real numbers.
  void add(dtype type, std::span<const std::byte> elements);
};

/// Returns the statistics of a whole tensor. Empty for strings, complex numbers, and types that cannot be read.
/// @errors As `checkpoint_reader::pieces`.
/// @cost Memory for one piece.
[[nodiscard]] std::optional<tensor_stats> stats_of(const checkpoint_reader& reader, const checkpoint_entry& entry);

}  // namespace stepwell::tool
