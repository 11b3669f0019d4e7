// SPDX-License-Identifier: Apache-2.0
//
// Calls of the library that may never return, with a limit.
#pragma once

#include <chrono>
#include <functional>

namespace stepwell::tensorflow::detail {

/// Calls `action` in a thread of its own and waits for its end, at most `limit`. Returns false if it still runs then. The thread goes on,
/// so `action` must own everything that it uses. If no thread can be started, calls it in this thread, without a limit.
/// @pre `action` does not throw.
[[nodiscard]] bool ends_within(std::chrono::milliseconds limit, std::function<void()> action);

}  // namespace stepwell::tensorflow::detail
