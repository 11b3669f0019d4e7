// SPDX-License-Identifier: Apache-2.0
//
// Protobuf's strings must be UTF-8: a reader refuses the whole message for one bad byte.
#pragma once

#include <string>
#include <string_view>

namespace stepwell::format {

/// @cost Eight bytes a step while they are ASCII.
[[nodiscard]] bool is_utf8(std::string_view text) noexcept;

/// The text with each byte that is not part of a good sequence replaced by U+FFFD.
[[nodiscard]] std::string to_utf8(std::string_view text);

}  // namespace stepwell::format
