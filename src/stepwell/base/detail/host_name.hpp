// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace stepwell::detail {

/// Returns the name of this machine, or "localhost" if it has none.
[[nodiscard]] std::string host_name();

}  // namespace stepwell::detail
