// SPDX-License-Identifier: Apache-2.0
//
// Internal: starts threads. All threads of the library are started here.
#pragma once

#include "stepwell/base/result.hpp"

#include <functional>
#include <string_view>
#include <thread>

namespace stepwell::detail {

/// Starts a thread that calls `body`. `name` is used in the error message only.
/// @errors `resource_exhausted` if the system cannot start another thread.
[[nodiscard]] result<std::thread> start_thread(std::string_view name, std::function<void()> body);

}  // namespace stepwell::detail
