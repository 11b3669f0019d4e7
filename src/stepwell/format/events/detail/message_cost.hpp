// SPDX-License-Identifier: Apache-2.0
//
// Private to format: estimates the memory of a parsed message before it is parsed. Two bytes of a message can need hundreds of bytes of
// memory.
#pragma once

#include <cstddef>
#include <span>

namespace google::protobuf {
class Descriptor;
}

namespace stepwell::format {

/// Returns false if the message, parsed and converted to the types of stepwell, would need more memory than 24 MiB plus twice the size of
/// `bytes`. The result is unspecified if `bytes` is not a message of this type.
/// @cost One pass over tags and lengths, and over packed integers. Allocates nothing.
[[nodiscard]] bool is_affordable(const google::protobuf::Descriptor& type, std::span<const std::byte> bytes);

}  // namespace stepwell::format
