// SPDX-License-Identifier: Apache-2.0
//
// The error of a cancelled operation, Asio's `operation_aborted`.
#pragma once

#include <exception>

namespace stepwell::coro {

/// Throws the error of a cancelled operation.
[[noreturn]] void throw_aborted();

/// Returns true if `failure` is the error of a cancelled operation.
[[nodiscard]] bool is_aborted(const std::exception_ptr& failure) noexcept;

}  // namespace stepwell::coro
