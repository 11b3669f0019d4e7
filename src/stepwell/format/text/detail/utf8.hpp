// SPDX-License-Identifier: Apache-2.0
//
// UTF-8 checks and repairs. The strings of protobuf must be UTF-8: readers reject a whole message if one byte is invalid.
#pragma once

#include <string>
#include <string_view>

namespace stepwell::format {

/// Returns true if `text` is well-formed UTF-8. @cost Eight bytes per step up to the first character that is not ASCII.
[[nodiscard]] bool is_utf8(std::string_view text) noexcept;

/// Returns `text` with U+FFFD in place of each byte that is not part of a well-formed sequence.
[[nodiscard]] std::string to_utf8(std::string_view text);

}  // namespace stepwell::format
