// SPDX-License-Identifier: Apache-2.0
//
// Conversion of many elements to doubles.
#pragma once

#include "stepwell/base/tensor.hpp"

#include <span>

namespace stepwell::kernel {

/// Writes all elements as doubles. Each one is that of `number_at`.
/// @pre    `numbers` has as many elements as `values`.
/// @errors `invalid_argument_error` if the elements are complex or not numbers.
void to_doubles(const elements_view& values, std::span<double> numbers);

}  // namespace stepwell::kernel
