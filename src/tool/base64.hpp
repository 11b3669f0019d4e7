// SPDX-License-Identifier: Apache-2.0
//
// Base64 text of bytes, for documents that can hold text only.
#pragma once

#include <string>
#include <string_view>

namespace stepwell::tool {

/// Returns the base64 of RFC 4648, padded.
[[nodiscard]] std::string base64_of(std::string_view bytes);

}  // namespace stepwell::tool
