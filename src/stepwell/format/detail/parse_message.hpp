// SPDX-License-Identifier: Apache-2.0
//
// Private to format: messages out of bytes, with nothing said behind our log's back.
#pragma once

#include <cstddef>
#include <span>

namespace google::protobuf {
class Message;
}

namespace stepwell::format {

/// False when the bytes are not that message, or one that takes more than 24 MiB and twice its size once it is parsed; then it
/// holds anything. Never throws, never prints.
[[nodiscard]] bool parse_message(google::protobuf::Message& message, std::span<const std::byte> bytes);

}  // namespace stepwell::format
