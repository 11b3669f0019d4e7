// SPDX-License-Identifier: Apache-2.0
//
// Error messages of `io` for failed system calls. They name the operation, the path, the error, and a remedy.
#pragma once

#include "stepwell/base/status.hpp"

#include <string>
#include <string_view>

namespace stepwell::io {

/// Returns the status for `errno_value` after the operation `tried` ("could not open it for reading") on `path`, with advice to the user.
[[nodiscard]] status failure(int errno_value, std::string_view tried, std::string path);

}  // namespace stepwell::io
