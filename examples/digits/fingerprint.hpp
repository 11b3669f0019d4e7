// SPDX-License-Identifier: Apache-2.0
//
// A text of sixteen hexadecimal digits that depends on every bit of a model.
#pragma once

#include <stepwell/base/variable.hpp>

#include <string>

namespace digits {

/// Returns a checksum (64-bit FNV-1a, in hexadecimal) over the names and bytes of `variables`, in their order.
[[nodiscard]] std::string fingerprint(const stepwell::variable_list& variables);

}  // namespace digits
