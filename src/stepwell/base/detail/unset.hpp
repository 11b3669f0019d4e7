// SPDX-License-Identifier: Apache-2.0
//
// The mark of values in the state of a hook that have never been set. A restore from a checkpoint without such a value keeps the mark, and
// checkpoints contain it.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace stepwell::detail {

/// A NaN in which all bits are ones. No computation returns it unless it was an operand.
inline constexpr double unset_number = std::bit_cast<double>(~std::uint64_t{0});

[[nodiscard]] constexpr bool is_unset(double value) noexcept { return std::bit_cast<std::uint64_t>(value) == ~std::uint64_t{0}; }

/// Returns the value. Empty if it is unset.
[[nodiscard]] constexpr std::optional<double> if_set(double value) noexcept {
  return is_unset(value) ? std::nullopt : std::optional(value);
}

/// Sets all bits of the elements of floating-point type in `bytes`.
inline void mark_unset(std::span<std::byte> bytes) noexcept { std::ranges::fill(bytes, std::byte{0xFF}); }
[[nodiscard]] inline bool is_unset(std::span<const std::byte> bytes) noexcept {
  return std::ranges::all_of(bytes, [](std::byte one) { return one == std::byte{0xFF}; });
}

}  // namespace stepwell::detail
