// SPDX-License-Identifier: Apache-2.0
//
// Statistics of a tensor's values, in one pass.
#pragma once

#include "stepwell/base/dtype.hpp"
#include "stepwell/checkpoint/checkpoint_reader.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace stepwell::tool {

/// All but the counts are of the finite values, and mean nothing without one.
struct tensor_stats {
  std::uint64_t count = 0;
  std::uint64_t nans = 0;
  std::uint64_t infinities = 0;
  double min = 0;
  double max = 0;
  double mean = 0;
  double stddev = 0;  ///< Of these values, not an estimate for others: divided by their number.

  [[nodiscard]] std::uint64_t finite() const noexcept { return count - nans - infinities; }

  /// Adds more elements. No finite values overflow, be they as large or as small as a double can be. @pre They are numbers, not complex ones.
  void add(dtype type, std::span<const std::byte> elements);
};

/// Of a whole tensor; nothing for strings, complex numbers, and what is not read.
/// @errors As `checkpoint_reader::pieces`. @cost Memory for one piece.
[[nodiscard]] std::optional<tensor_stats> stats_of(const checkpoint_reader& reader, const checkpoint_entry& entry);

}  // namespace stepwell::tool
