// SPDX-License-Identifier: Apache-2.0
//
// Internal: a failure of whatever type, as text.
#pragma once

#include <exception>
#include <string>

namespace stepwell::detail {

/// What `failure` says, for a log line; an exception of a foreign type says that it is one.
/// @pre It is not null.
[[nodiscard]] std::string text_of(const std::exception_ptr& failure);

}  // namespace stepwell::detail
