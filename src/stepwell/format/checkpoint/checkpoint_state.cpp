// SPDX-License-Identifier: Apache-2.0
#include "stepwell/format/checkpoint/checkpoint_state.hpp"

#include "stepwell/format/proto/checkpoint_state.pb.h"

#include <fmt/format.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/text_format.h>
#include <algorithm>
#include <iterator>
#include <limits>

namespace stepwell::format {
namespace {

namespace pb = ::google::protobuf;
constexpr int max_nesting = 32;                                 // of unknown fields; the known fields are not nested
constexpr std::ptrdiff_t max_values = std::ptrdiff_t{1} << 16;  // paths and timestamps in total; the search for a path takes 0.1 ms
constexpr std::size_t max_path = 4096;                          // operating systems reject longer paths

/// An error collector that keeps the first error instead of printing it to standard error.
class first_error final : public pb::io::ErrorCollector {
public:
#if GOOGLE_PROTOBUF_VERSION < 4022000  // protobuf 22 renamed the functions, and protobuf 26 removed the old names
  void AddError(int line, pb::io::ColumnNumber column, const std::string& message) override { RecordError(line, column, message); }
  void AddWarning(int, pb::io::ColumnNumber, const std::string&) override {}
  void RecordError(int line, pb::io::ColumnNumber column, std::string_view message) {
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

bool is_too_long(const std::string& path) { return path.size() > max_path; }

}  // namespace

std::string encode(const checkpoint_state& state) {
  ::tensorflow::CheckpointState message;
  message.set_model_checkpoint_path(state.model_checkpoint_path);
  for (const auto& path : state.all_model_checkpoint_paths) { message.add_all_model_checkpoint_paths(path); }
  for (const auto time : state.all_model_checkpoint_timestamps) { message.add_all_model_checkpoint_timestamps(time); }
  message.set_last_preserved_timestamp(state.last_preserved_timestamp);
  std::string text;
  pb::TextFormat::Printer printer;
  printer.SetUseShortRepeatedPrimitives(false);
  static_cast<void>(printer.PrintToString(message, &text));  // cannot fail: the output is a string
  return text;
}

result<checkpoint_state> decode_checkpoint_state(std::string_view text) {
  // Limits memory and time. Each value has a colon or a comma before it, so their number is an upper bound of the number of values.
  const auto bound = std::ranges::count(text, ':') + std::ranges::count(text, ',');
  if (text.size() > std::numeric_limits<int>::max() || bound > max_values) {
    return status(errc::data_loss, fmt::format("the state file has more than {} values", max_values));
  }
  ::tensorflow::CheckpointState message;
  first_error complaint;
  pb::TextFormat::Parser parser;
  parser.AllowUnknownField(true);
  parser.SetRecursionLimit(max_nesting);
  parser.RecordErrorsTo(&complaint);
  pb::io::ArrayInputStream stream(text.data(), static_cast<int>(text.size()));
  if (!parser.Parse(&stream, &message)) { return status(errc::data_loss, "the state file does not parse: " + complaint.text()); }
  if (message.model_checkpoint_path().empty()) { return status(errc::data_loss, "the state file has no model_checkpoint_path"); }
  if (is_too_long(message.model_checkpoint_path()) || std::ranges::any_of(message.all_model_checkpoint_paths(), is_too_long)) {
    return status(errc::data_loss, fmt::format("the state file has a path of more than {} bytes", max_path));
  }
  auto& paths = *message.mutable_all_model_checkpoint_paths();
  checkpoint_state state{.model_checkpoint_path = message.model_checkpoint_path(),
                         .all_model_checkpoint_paths = {std::make_move_iterator(paths.begin()), std::make_move_iterator(paths.end())},
                         .all_model_checkpoint_timestamps = {message.all_model_checkpoint_timestamps().begin(),
                                                             message.all_model_checkpoint_timestamps().end()},
                         .last_preserved_timestamp = message.last_preserved_timestamp()};
  if (state.all_model_checkpoint_timestamps.size() != state.all_model_checkpoint_paths.size()) {
    state.all_model_checkpoint_timestamps.clear();
  }
  return state;
}

}  // namespace stepwell::format
