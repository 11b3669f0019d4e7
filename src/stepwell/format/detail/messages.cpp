// SPDX-License-Identifier: Apache-2.0
#include "stepwell/format/detail/messages.hpp"

#include "stepwell/format/detail/coding.hpp"

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/message.h>
#include <google/protobuf/stubs/common.h>
#include <google/protobuf/text_format.h>
#include <algorithm>
#include <limits>
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

constexpr int max_nesting = 32;                                 // of unknown fields; the known fields are not nested
constexpr std::ptrdiff_t max_values = std::ptrdiff_t{1} << 16;  // a list of so many paths is searched in 0.1 ms

/// An error collector that keeps the first error instead of printing it to standard error.
class first_error final : public pb::io::ErrorCollector {
public:
#if GOOGLE_PROTOBUF_VERSION < 4022000  // protobuf 22 renamed the functions, and protobuf 26 removed the old names
  void AddError(int line, pb::io::ColumnNumber column, const std::string& message) override { RecordError(line, column, message); }
  void AddWarning(int, pb::io::ColumnNumber, const std::string&) override {}
  void RecordError(int line, pb::io::ColumnNumber column, std::string_view message) {  // NOLINT(readability-identifier-naming)
#else
  void RecordWarning(int, pb::io::ColumnNumber, absl::string_view) override {}
  void RecordError(int line, pb::io::ColumnNumber column, absl::string_view message) override {
#endif
    if (text_.empty()) { text_ = fmt::format("line {}, column {}: {}", line + 1, column + 1, std::string_view(message)); }
  }
  [[nodiscard]] const std::string& text() const noexcept { return text_; }

private:
  std::string text_;
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

std::string print_text(const pb::Message& message) {
  std::string text;
  pb::TextFormat::Printer printer;
  printer.SetUseShortRepeatedPrimitives(false);
  static_cast<void>(printer.PrintToString(message, &text));  // cannot fail: the output is a string
  return text;
}

result<void> parse_text(pb::Message& message, std::string_view text, std::string_view what) {
  // Limits memory and time. Each value has a colon or a comma before it, so their number is an upper bound of the number of values.
  const auto bound = std::ranges::count(text, ':') + std::ranges::count(text, ',');
  if (text.size() > std::numeric_limits<int>::max() || bound > max_values) {
    return status(errc::data_loss, fmt::format("{} has more than {} values", what, max_values));
  }
  first_error complaint;
  pb::TextFormat::Parser parser;
  parser.AllowUnknownField(true);
  parser.SetRecursionLimit(max_nesting);
  parser.RecordErrorsTo(&complaint);
  pb::io::ArrayInputStream stream(text.data(), static_cast<int>(text.size()));
  if (!parser.Parse(&stream, &message)) { return status(errc::data_loss, fmt::format("{} does not parse: {}", what, complaint.text())); }
  return {};
}

}  // namespace stepwell::format
