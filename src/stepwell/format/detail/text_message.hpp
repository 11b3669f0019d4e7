// SPDX-License-Identifier: Apache-2.0
//
// Private to format: protobuf messages as text, with one field per line.
#pragma once

#include "stepwell/base/error.hpp"

#include <string>
#include <string_view>

namespace google::protobuf {
class Message;
}

namespace stepwell::format {

/// Returns `message` as text.
[[nodiscard]] std::string print_text(const google::protobuf::Message& message);

/// Parses `text` into `message`. Unknown fields are ignored. Prints nothing.
/// @errors `data_loss` if `text` does not parse, or if it may have more than 65,536 values. The message begins with `what`, and has the line
///         and the column.
/// @cost   Linear time.
[[nodiscard]] result<void> parse_text(google::protobuf::Message& message, std::string_view text, std::string_view what);

}  // namespace stepwell::format
