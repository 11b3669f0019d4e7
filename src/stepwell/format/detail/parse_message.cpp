// SPDX-License-Identifier: Apache-2.0
#include "stepwell/format/detail/parse_message.hpp"

#include "stepwell/format/events/detail/message_cost.hpp"

#include <google/protobuf/message.h>
#include <google/protobuf/stubs/common.h>
#include <limits>
#if GOOGLE_PROTOBUF_VERSION < 4022000
#include <google/protobuf/stubs/logging.h>
#endif

namespace stepwell::format {

bool parse_message(google::protobuf::Message& message, std::span<const std::byte> bytes) {
#if GOOGLE_PROTOBUF_VERSION < 4022000
  // The caller reports the error, so the message that protobuf prints is redundant. Since protobuf 22 it prints through Abseil. Abseil can
  // be silenced only together with the program's own log messages, so those versions may print one line to standard error.
  const google::protobuf::LogSilencer silence;
#endif
  if (bytes.size() > std::numeric_limits<int>::max() || !is_affordable(*message.GetDescriptor(), bytes)) { return false; }
  return message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
}

}  // namespace stepwell::format
