// SPDX-License-Identifier: Apache-2.0
//
// Internal: the one place where the library creates threads.
#pragma once

#include "stepwell/base/result.hpp"

#include <functional>
#include <string_view>
#include <thread>

namespace stepwell::detail {

/// Starts a thread that calls `body`. `name` is for the message only.
/// @errors `resource_exhausted` if the system has no more threads.
[[nodiscard]] result<std::thread> start_thread(std::string_view name, std::function<void()> body);

}  // namespace stepwell::detail
