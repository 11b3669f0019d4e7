// SPDX-License-Identifier: Apache-2.0
//
// Private: calls of other libraries that may never return, with a time limit.
#pragma once

#include <chrono>
#include <functional>
#include <string_view>

namespace stepwell::detail {

/// Calls `action` in a thread of its own and waits for its end, at most `limit`. Returns false if it still runs then. The thread goes on,
/// so `action` must own everything that it uses. If no thread can be started, calls it in this thread, without a limit. `name` is used in
/// error messages only.
/// @pre `action` does not throw.
[[nodiscard]] bool ends_within(std::chrono::milliseconds limit, std::string_view name, std::function<void()> action);

}  // namespace stepwell::detail
