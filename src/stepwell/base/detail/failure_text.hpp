// SPDX-License-Identifier: Apache-2.0
//
// Internal: the text of an exception of any type.
#pragma once

#include <exception>
#include <string>

namespace stepwell::detail {

/// Returns the text of `failure` for a log line: `what()` if it is a `std::exception`, otherwise "an exception of unknown type".
/// @pre `failure` is not null.
[[nodiscard]] std::string text_of(const std::exception_ptr& failure);

}  // namespace stepwell::detail
