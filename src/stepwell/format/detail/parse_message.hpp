// SPDX-License-Identifier: Apache-2.0
//
// Private to format: parses protobuf messages, with limited memory and without the error output of protobuf.
#pragma once

#include <cstddef>
#include <span>

namespace google::protobuf {
class Message;
}

namespace stepwell::format {

/// Parses `bytes` into `message`. Returns false if they are not such a message, or if the parsed message would need more memory than
/// 24 MiB plus `memory_per_byte` times the size of `bytes`. The content of `message` is then unspecified. Never throws.
/// Prints nothing with protobuf before 22. Later versions may write one line to standard error.
[[nodiscard]] bool parse_message(google::protobuf::Message& message, std::span<const std::byte> bytes, std::size_t memory_per_byte = 2);

}  // namespace stepwell::format
