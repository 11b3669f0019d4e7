// SPDX-License-Identifier: Apache-2.0
//
// Private: escapes text from files and users for output to a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace stepwell::detail {

/// Returns the length in bytes of the well-formed UTF-8 sequence at the front of `text`. Returns 0 if there is none: stray or
/// missing continuation bytes, an overlong form, a surrogate, or a code point above U+10FFFF. @pre `text` is not empty.
[[nodiscard]] std::size_t utf8_sequence_size(std::string_view text) noexcept;

/// Returns true for C0, DEL and C1 (U+0080 to U+009F, as UTF-8). @pre `sequence` is one well-formed UTF-8 sequence.
[[nodiscard]] bool is_control_character(std::string_view sequence) noexcept;

/// Returns `text` with each control character and each byte that is not UTF-8 escaped: "\x1b". Escaping twice changes nothing.
[[nodiscard]] std::string printable(std::string_view text);

/// Like `printable`, but keeps line feeds.
[[nodiscard]] std::string printable_lines(std::string_view text);

}  // namespace stepwell::detail
