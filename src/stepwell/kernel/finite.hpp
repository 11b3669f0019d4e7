// SPDX-License-Identifier: Apache-2.0
//
// Tests of arrays for NaN and infinite values.
#pragma once

#include <span>

namespace stepwell::kernel {

/// Returns true if all values are finite, that is, neither NaN nor infinite. Returns true for an empty span. Any alignment.
/// The result is wrong under -ffast-math.
/// @cost O(n). Stops soon after the first value that is not finite.
[[nodiscard]] bool all_finite(std::span<const float> values) noexcept;
[[nodiscard]] bool all_finite(std::span<const double> values) noexcept;

/// Returns true if at least one value is NaN. Infinities are not NaN. Any alignment. The result is wrong under -ffast-math.
/// @cost O(n). Stops soon after the first NaN.
[[nodiscard]] bool any_nan(std::span<const float> values) noexcept;
[[nodiscard]] bool any_nan(std::span<const double> values) noexcept;

}  // namespace stepwell::kernel
