// SPDX-License-Identifier: Apache-2.0
#include "stepwell/format/events/summary.hpp"

#include "stepwell/format/detail/parse_message.hpp"
#include "stepwell/format/events/detail/summary_message.hpp"
#include "stepwell/format/events/detail/tensor_message.hpp"
#include "stepwell/format/proto/summary.pb.h"
#include "stepwell/format/text/detail/utf8.hpp"

#include <algorithm>
#include <cstddef>

namespace stepwell::format {
namespace {

using value_message = tensorflow::Summary::Value;

summary_metadata read(const tensorflow::SummaryMetadata& message) {
  return {message.plugin_data().plugin_name(), message.plugin_data().content(), message.display_name(), message.summary_description(),
          static_cast<data_class>(message.data_class())};
}

histogram_value read(const tensorflow::HistogramProto& message) {
  return {message.min(),
          message.max(),
          message.num(),
          message.sum(),
          message.sum_squares(),
          {message.bucket_limit().begin(), message.bucket_limit().end()},
          {message.bucket().begin(), message.bucket().end()}};
}

image_value read(const tensorflow::Summary::Image& message) {
  return {message.height(), message.width(), message.colorspace(), message.encoded_image_string()};
}

audio_value read(const tensorflow::Summary::Audio& message) {
  return {message.sample_rate(), message.num_channels(), message.length_frames(), message.encoded_audio_string(), message.content_type()};
}

result<void> read_tensor_into(const value_message& message, summary_value& value) {
  if (!is_representable(message.tensor())) {
    value.value = opaque_tensor{message.tensor().SerializeAsString()};
    return {};
  }
  auto read = read_tensor(message.tensor());
  if (!read) {
    auto failure = std::move(read).error();
    failure.place = "tag " + message.tag();
    return failure;
  }
  value.value = std::move(read).value();
  return {};
}

result<summary_value> read(const value_message& message) {
  summary_value value{message.tag(), message.node_name(), std::nullopt, {}};
  if (message.has_metadata()) { value.metadata = read(message.metadata()); }
  switch (message.value_case()) {
    case value_message::kSimpleValue: value.value = message.simple_value(); break;
    case value_message::kHisto: value.value = read(message.histo()); break;
    case value_message::kImage: value.value = read(message.image()); break;
    case value_message::kAudio: value.value = read(message.audio()); break;
    case value_message::kObsoleteOldStyleHistogram: value.value = obsolete_histogram{message.obsolete_old_style_histogram()}; break;
    case value_message::kTensor:
      if (auto done = read_tensor_into(message, value); !done) { return std::move(done).error(); }
      break;
    case value_message::VALUE_NOT_SET: break;
  }
  return value;
}

constexpr std::size_t expansion_limit = std::size_t{8} << 20;

/// Returns the number of bytes by which a tensor in memory is larger than its message. A message stores a repeated value once.
std::size_t expansion_of(const summary_value& value, const value_message& message) {
  const auto* held = std::get_if<tensor>(&value.value);
  if (held == nullptr) { return 0; }
  auto size = held->bytes().size() + held->strings().size() * sizeof(std::string);
  for (const auto& text : held->strings()) { size += text.size(); }
  return size - std::min(size, message.ByteSizeLong());
}

void write(const summary_metadata& metadata, tensorflow::SummaryMetadata& message) {
  auto* const plugin = message.mutable_plugin_data();
  plugin->set_plugin_name(to_utf8(metadata.plugin_name));
  plugin->set_content(metadata.plugin_content);
  message.set_display_name(to_utf8(metadata.display_name));
  message.set_summary_description(to_utf8(metadata.description));
  message.set_data_class(static_cast<tensorflow::DataClass>(metadata.data_class));
}

// A visitor that writes a value into the message.
struct value_writer {
  value_message& message;

  void operator()(std::monostate) const {}
  void operator()(float value) const { message.set_simple_value(value); }
  void operator()(const tensor& value) const { write_tensor(value, *message.mutable_tensor()); }
  void operator()(const opaque_tensor& value) const {
    static_cast<void>(message.mutable_tensor()->ParseFromString(value.bytes));  // cannot fail: the bytes come from a parsed message
  }
  void operator()(const obsolete_histogram& value) const { message.set_obsolete_old_style_histogram(value.bytes); }
  void operator()(const histogram_value& value) const {
    auto& histo = *message.mutable_histo();
    histo.set_min(value.min);
    histo.set_max(value.max);
    histo.set_num(value.num);
    histo.set_sum(value.sum);
    histo.set_sum_squares(value.sum_squares);
    histo.mutable_bucket_limit()->Add(value.bucket_limits.begin(), value.bucket_limits.end());
    histo.mutable_bucket()->Add(value.buckets.begin(), value.buckets.end());
  }
  void operator()(const image_value& value) const {
    auto& image = *message.mutable_image();
    image.set_height(value.height);
    image.set_width(value.width);
    image.set_colorspace(value.colorspace);
    image.set_encoded_image_string(value.encoded);
  }
  void operator()(const audio_value& value) const {
    auto& audio = *message.mutable_audio();
    audio.set_sample_rate(value.sample_rate);
    audio.set_num_channels(value.num_channels);
    audio.set_length_frames(value.length_frames);
    audio.set_encoded_audio_string(value.encoded);
    audio.set_content_type(to_utf8(value.content_type));
  }
};

void write(const summary_value& value, value_message& message) {
  message.set_tag(to_utf8(value.tag));
  message.set_node_name(to_utf8(value.node_name));
  if (value.metadata) { write(*value.metadata, *message.mutable_metadata()); }
  std::visit(value_writer{message}, value.value);
}

}  // namespace

result<summary> read_summary(const tensorflow::Summary& message) {
  summary all;
  all.values.reserve(static_cast<std::size_t>(message.value_size()));
  std::size_t expanded = 0;
  for (const auto& value : message.value()) {
    auto one = read(value);
    if (!one) { return std::move(one).error(); }
    expanded += expansion_of(*one, value);
    if (expanded > expansion_limit) { return status(errc::data_loss, "tensors of a summary expand to more than 8 MiB"); }
    all.values.push_back(std::move(one).value());
  }
  return all;
}

void write_summary(const summary& values, tensorflow::Summary& message) {
  for (const auto& value : values.values) { write(value, *message.add_value()); }
}

std::string encode_summary(const summary& values) {
  tensorflow::Summary message;
  write_summary(values, message);
  return message.SerializeAsString();
}

result<summary> decode_summary(std::span<const std::byte> bytes) {
  tensorflow::Summary message;
  if (!parse_message(message, bytes)) { return status(errc::data_loss, "the bytes are not a Summary"); }
  return read_summary(message);
}

}  // namespace stepwell::format
