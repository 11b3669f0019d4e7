// SPDX-License-Identifier: Apache-2.0
//
// A checksum of variables, with which a program can compare two states, for example that of a resumed run and that of an uninterrupted one.
#pragma once

#include "stepwell/base/variable.hpp"

#include <cstdint>

namespace stepwell {

/// Returns the CRC-32C of the names, dtypes, shapes and elements of all variables, in the order of the list. Lists with the same names,
/// dtypes, shapes and bits have the same checksum. For example, 0.0 and -0.0 have different bits.
/// @errors Errors of the device, for elements on a device.
/// @threads The elements must not change during the call.
/// @cost Reads all elements once. Elements on a device are copied first, one variable at a time.
[[nodiscard]] std::uint32_t checksum(const variable_list& variables);

}  // namespace stepwell
