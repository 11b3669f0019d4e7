// SPDX-License-Identifier: Apache-2.0
#include "stepwell/format/detail/text_message.hpp"

#include <fmt/format.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/message.h>
#include <google/protobuf/text_format.h>
#include <algorithm>
#include <cstddef>
#include <limits>

namespace stepwell::format {
namespace {

namespace pb = ::google::protobuf;
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
