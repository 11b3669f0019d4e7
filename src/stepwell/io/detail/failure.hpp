// SPDX-License-Identifier: Apache-2.0
//
// How `io` words what the system refused: what was tried, on what, what happened, what to do.
#pragma once

#include "stepwell/base/status.hpp"

#include <string>
#include <string_view>

namespace stepwell::io {

/// The status for `errno_value` met while doing `tried` ("could not open it for reading") on `path`, with advice.
[[nodiscard]] status failure(int errno_value, std::string_view tried, std::string path);

}  // namespace stepwell::io
