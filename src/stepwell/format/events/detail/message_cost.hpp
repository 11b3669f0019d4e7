// SPDX-License-Identifier: Apache-2.0
//
// Private to format: how much memory a message takes once it is parsed, known before. Two bytes can stand for hundreds.
#pragma once

#include <cstddef>
#include <span>

namespace google::protobuf {
class Descriptor;
}

namespace stepwell::format {

/// Returns false for a message of this type that would take more than 24 MiB and twice its size, parsed and turned into our types.
/// Bytes that are no message may get either answer. @cost One pass over tags and lengths; no memory.
[[nodiscard]] bool is_affordable(const google::protobuf::Descriptor& type, std::span<const std::byte> bytes);

}  // namespace stepwell::format
