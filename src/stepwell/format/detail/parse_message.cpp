// SPDX-License-Identifier: Apache-2.0
#include "stepwell/format/detail/parse_message.hpp"

#include "stepwell/format/detail/coding.hpp"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <google/protobuf/stubs/common.h>
#include <algorithm>
#include <limits>
#include <string_view>
#if GOOGLE_PROTOBUF_VERSION < 4022000
#include <google/protobuf/stubs/logging.h>
#endif

namespace stepwell::format {
namespace {

namespace pb = ::google::protobuf;

// Estimated memory in bytes.
constexpr std::size_t of_message = 600;  // the objects of protobuf and of stepwell for one message
constexpr std::size_t of_text = 100;     // the objects for one string, without its characters
constexpr std::size_t of_number = 16;    // one element of a growing repeated field
constexpr int deepest = 100;             // protobuf's limit of the nesting depth

// Estimates the memory of a parsed message before it is parsed: two bytes of a message can need hundreds of bytes of memory.
// Adds the costs until the budget is spent. Makes one pass over tags and lengths, and over packed integers. Allocates nothing.
class cost_counter {
public:
  explicit cost_counter(std::size_t budget) : budget_(budget) {}

  // Returns false if the budget is spent. Returns true at the end of the bytes, and at the first bytes that are not part of a message.
  bool count(const pb::Descriptor& type, std::string_view bytes, int depth) {
    while (!bytes.empty()) {
      const auto tag = take_varint(bytes);
      if (!tag) { return true; }
      const auto* field = type.FindFieldByNumber(static_cast<int>(*tag >> 3U));
      switch (*tag & 7U) {
        case 0:
          if (!take_varint(bytes)) { return true; }
          break;
        case 1: bytes.remove_prefix(std::min<std::size_t>(bytes.size(), 8)); break;
        case 5: bytes.remove_prefix(std::min<std::size_t>(bytes.size(), 4)); break;
        case 2: {
          const auto size = take_varint(bytes);
          if (!size || *size > bytes.size()) { return true; }
          if (!count_sized(field, bytes.substr(0, *size), depth)) { return false; }
          bytes.remove_prefix(*size);
          continue;
        }
        default: break;  // the start or the end of a group
      }
      if (!spend(of_number)) { return false; }
    }
    return true;
  }

private:
  bool spend(std::size_t cost) {
    if (cost > budget_) { return false; }
    budget_ -= cost;
    return true;
  }

  bool count_sized(const pb::FieldDescriptor* field, std::string_view bytes, int depth) {
    if (field == nullptr || field->cpp_type() == pb::FieldDescriptor::CPPTYPE_STRING) { return spend(of_text + bytes.size()); }
    if (field->cpp_type() == pb::FieldDescriptor::CPPTYPE_MESSAGE) {
      return spend(of_message) && (depth == 0 || count(*field->message_type(), bytes, depth - 1));
    }
    // Each varint ends with a byte below 0x80, so this is the number of varints.
    const auto ends = std::ranges::count_if(bytes, [](char byte) { return (byte & '\x80') == 0; });
    const bool is_fixed =
        field->cpp_type() == pb::FieldDescriptor::CPPTYPE_FLOAT || field->cpp_type() == pb::FieldDescriptor::CPPTYPE_DOUBLE;
    return spend(is_fixed ? 2 * bytes.size() : of_number * static_cast<std::size_t>(ends));
  }

  std::size_t budget_;
};

}  // namespace

bool parse_message(pb::Message& message, std::span<const std::byte> bytes, std::size_t memory_per_byte) {
#if GOOGLE_PROTOBUF_VERSION < 4022000
  // The caller reports the error, so the message that protobuf prints is redundant. Since protobuf 22 it prints through Abseil. Abseil can
  // be silenced only together with the program's own log messages, so those versions may print one line to standard error.
  const pb::LogSilencer silence;
#endif
  if (bytes.size() > std::numeric_limits<int>::max()) { return false; }
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  cost_counter cost((std::size_t{24} << 20) + memory_per_byte * bytes.size());
  return cost.count(*message.GetDescriptor(), text, deepest) && message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
}

}  // namespace stepwell::format
