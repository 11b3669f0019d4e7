// SPDX-License-Identifier: Apache-2.0
//
// Private: the classification of failures. All decisions about an exception of unknown type (recover, retry, end the loop) use it.
#pragma once

#include "stepwell/base/error.hpp"

#include <exception>
#include <optional>

namespace stepwell::detail {

/// Returns the kind of `failure` if it is an exception of stepwell. Empty for other exceptions, and for null.
[[nodiscard]] std::optional<errc> kind_of(const std::exception_ptr& failure) noexcept;

/// Returns true for the kinds of failures that a recovery may overcome. @see contract REC-1
[[nodiscard]] constexpr bool is_transient(std::optional<errc> kind) noexcept { return kind == errc::aborted || kind == errc::unavailable; }

}  // namespace stepwell::detail
