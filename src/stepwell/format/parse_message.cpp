// SPDX-License-Identifier: Apache-2.0
#include "stepwell/format/parse_message.hpp"

#include <google/protobuf/message_lite.h>
#include <google/protobuf/stubs/logging.h>
#include <limits>

namespace stepwell::format {

bool parse_message(google::protobuf::MessageLite& message, std::span<const std::byte> bytes) {
  const google::protobuf::LogSilencer silence;  // the caller reports; protobuf would print beside it
  return bytes.size() <= std::numeric_limits<int>::max() && message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
}

}  // namespace stepwell::format
