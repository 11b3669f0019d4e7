// SPDX-License-Identifier: Apache-2.0
//
// Private to format: protobuf messages, parsed with limited memory and without the error output of protobuf, and as text with one field per
// line.
#pragma once

#include "stepwell/base/error.hpp"

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace google::protobuf {
class Message;
}

namespace stepwell::format {

/// Parses `bytes` into `message`. Returns false if they are not such a message, or if the parsed message would need more memory than
/// 24 MiB plus `memory_per_byte` times the size of `bytes`. The content of `message` is then unspecified. Never throws.
/// Prints nothing with protobuf before 22. Later versions may write one line to standard error.
[[nodiscard]] bool parse_message(google::protobuf::Message& message, std::span<const std::byte> bytes, std::size_t memory_per_byte = 2);

/// Returns `message` as text.
[[nodiscard]] std::string print_text(const google::protobuf::Message& message);

/// Parses `text` into `message`. Unknown fields are ignored. Prints nothing.
/// @errors `data_loss` if `text` does not parse, or if it may have more than 65,536 values. The message begins with `what`, and has the line
///         and the column.
/// @cost   Linear time.
[[nodiscard]] result<void> parse_text(google::protobuf::Message& message, std::string_view text, std::string_view what);

}  // namespace stepwell::format
