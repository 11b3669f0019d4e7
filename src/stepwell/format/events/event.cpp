// SPDX-License-Identifier: Apache-2.0
#include "stepwell/format/events/event.hpp"

#include "stepwell/format/detail/coding.hpp"
#include "stepwell/format/detail/messages.hpp"
#include "stepwell/format/events/detail/summary_values.hpp"
#include "stepwell/format/proto/event.pb.h"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <iterator>
#include <limits>

namespace stepwell::format {
namespace {

// --- Tensors ---

static_assert(std::endian::native == std::endian::little, "tensor_content would have to be swapped");

status damaged(std::string message) { return {errc::data_loss, std::move(message)}; }

result<tensor_shape> read_shape(const tensorflow::TensorShapeProto& message) {
  if (message.unknown_rank()) { return damaged("tensor of unknown rank"); }
  tensor_shape shape;
  std::int64_t count = 1;
  for (const auto& dim : message.dim()) {
    if (dim.size() < 0) { return damaged(fmt::format("tensor with a dimension of size {}", dim.size())); }
    if (dim.size() != 0 && count > std::numeric_limits<std::int64_t>::max() / 32 / dim.size()) {
      return damaged("tensor with too many elements");
    }
    shape.push_back(dim.size());
    count *= dim.size();
  }
  return shape;
}

// Calls `use` with the typed field of a dtype other than string, and with an element as an array of its parts. Complex numbers have two.
template<class Use>
auto with_typed_field(dtype type, const tensorflow::TensorProto& message, Use use) {
  switch (type) {
    case dtype::float32: return use(message.float_val(), std::array<float, 1>{});
    case dtype::float64: return use(message.double_val(), std::array<double, 1>{});
    case dtype::complex64: return use(message.scomplex_val(), std::array<float, 2>{});
    case dtype::complex128: return use(message.dcomplex_val(), std::array<double, 2>{});
    case dtype::int64: return use(message.int64_val(), std::array<std::int64_t, 1>{});
    case dtype::boolean: return use(message.bool_val(), std::array<bool, 1>{});
    case dtype::half:
    case dtype::bfloat16: return use(message.half_val(), std::array<std::uint16_t, 1>{});
    case dtype::uint32: return use(message.uint32_val(), std::array<std::uint32_t, 1>{});
    case dtype::uint64: return use(message.uint64_val(), std::array<std::uint64_t, 1>{});
    default: break;
  }
  if ((type >= dtype::float8_e5m2 && type <= dtype::float8_e5m2fnuz) || type == dtype::float4_e2m1fn) {
    return use(message.float8_val(), std::array<std::uint8_t, 1>{});
  }
  switch (size_of(type)) {
    case 1: return use(message.int_val(), std::array<std::int8_t, 1>{});
    case 2: return use(message.int_val(), std::array<std::int16_t, 1>{});
    default: return use(message.int_val(), std::array<std::int32_t, 1>{});
  }
}

// By TensorFlow's rule the last value is repeated for all missing values. Without any value the elements are zero.
void read_typed(const tensorflow::TensorProto& message, tensor& made) {
  with_typed_field(made.dtype(), message, [out = made.bytes()](const auto& field, auto element) {
    using part_type = typename decltype(element)::value_type;
    const auto given = static_cast<std::size_t>(field.size()) / element.size();
    auto next = field.begin();
    for (std::size_t i = 0; i < out.size() / sizeof element; ++i) {
      for (std::size_t part = 0; i < given && part < element.size(); ++part) { element[part] = static_cast<part_type>(*next++); }
      std::memcpy(out.data() + i * sizeof element, element.data(), sizeof element);
    }
  });
}

// Maximum size in bytes of a tensor whose message has fewer values than elements, so that the last value is repeated.
constexpr std::int64_t repeated_value_limit = std::int64_t{8} << 20;

result<void> check_amount(dtype type, std::int64_t count, const tensorflow::TensorProto& message) {
  std::int64_t values = message.string_val_size();
  auto width = static_cast<std::int64_t>(type == dtype::string ? sizeof(std::string) : size_of(type));
  if (type != dtype::string) {
    const auto count_of = [](const auto& field, auto element) { return std::ssize(field) / std::ssize(element); };
    values = with_typed_field(type, message, count_of);
  } else if (values > 0) {
    width += std::ssize(message.string_val(static_cast<int>(values) - 1));  // that is repeated
  }
  if (values > count) { return damaged(fmt::format("tensor of {} elements with {} values", count, values)); }
  if (values < count && count > repeated_value_limit / width) {
    return damaged(fmt::format("tensor of {} elements with only {} values", count, values));
  }
  return {};
}

// Returns true if `tensor` can hold the dtype of the message.
bool is_representable(const tensorflow::TensorProto& message) noexcept {
  const auto type = static_cast<dtype>(message.dtype());
  return type == dtype::string || size_of(type) != 0;
}

result<tensor> read_tensor(const tensorflow::TensorProto& message) {
  const auto type = static_cast<dtype>(message.dtype());
  auto shape = read_shape(message.tensor_shape());
  if (!shape) { return std::move(shape).error(); }
  const auto count = element_count(*shape);
  const auto& content = message.tensor_content();
  if (!content.empty() && type != dtype::string) {
    if (content.size() != static_cast<std::size_t>(count) * size_of(type)) {
      return damaged(fmt::format("tensor of {} {} elements with {} bytes", count, to_string(type), content.size()));
    }
    tensor made(type, std::move(*shape));
    std::memcpy(made.bytes().data(), content.data(), content.size());
    return made;
  }
  if (auto amount = check_amount(type, count, message); !amount) { return std::move(amount).error(); }
  tensor made(type, std::move(*shape));
  if (type != dtype::string) { read_typed(message, made); }
  for (std::size_t i = 0; i < made.strings().size() && message.string_val_size() > 0; ++i) {
    made.strings()[i] = message.string_val(std::min(static_cast<int>(i), message.string_val_size() - 1));
  }
  return made;
}

void write_tensor(const tensor& value, tensorflow::TensorProto& message) {
  message.set_dtype(static_cast<tensorflow::DataType>(value.dtype()));
  auto* const shape = message.mutable_tensor_shape();
  for (const auto size : value.shape()) { shape->add_dim()->set_size(size); }
  if (value.dtype() == dtype::string) {
    for (const auto& text : value.strings()) { message.add_string_val(text); }
  } else {
    message.set_tensor_content(value.bytes().data(), value.bytes().size());
  }
}

// --- Summaries ---

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

// --- Events ---

// A visitor that writes the item of an event into the message.
struct what_writer {
  tensorflow::Event& message;

  void operator()(std::monostate) const {}
  void operator()(const file_version& what) const { message.set_file_version(to_utf8(what.text)); }
  void operator()(const graph_def& what) const { message.set_graph_def(what.bytes); }
  void operator()(const meta_graph_def& what) const { message.set_meta_graph_def(what.bytes); }
  void operator()(const summary& what) const { write_summary(what, *message.mutable_summary()); }
  void operator()(const log_message& what) const {
    message.mutable_log_message()->set_level(static_cast<tensorflow::LogMessage::Level>(what.level));
    message.mutable_log_message()->set_message(to_utf8(what.message));
  }
  void operator()(const session_log& what) const {
    auto& log = *message.mutable_session_log();
    log.set_status(static_cast<tensorflow::SessionLog::SessionStatus>(what.status));
    log.set_checkpoint_path(to_utf8(what.checkpoint_path));
    log.set_msg(to_utf8(what.message));
  }
  void operator()(const tagged_run_metadata& what) const {
    message.mutable_tagged_run_metadata()->set_tag(to_utf8(what.tag));
    message.mutable_tagged_run_metadata()->set_run_metadata(what.run_metadata);
  }
};

/// Returns the event if all its values are scalars of the simple style. Most events are of this kind, and protobuf would take five times as
/// long.
std::optional<event> read_scalars(std::span<const std::byte> bytes) {
  std::vector<scalar_event> scalars;
  if (!decode_scalars(bytes, scalars)) { return std::nullopt; }
  summary values;
  values.values.reserve(scalars.size());
  for (const auto& one : scalars) { values.values.push_back({std::string(one.tag), "", std::nullopt, one.value}); }
  return event{scalars.front().wall_time, scalars.front().step, std::move(values), ""};
}

}  // namespace

std::string encode_event(const event& happened) {
  tensorflow::Event message;
  message.set_wall_time(happened.wall_time);
  message.set_step(happened.step);
  std::visit(what_writer{message}, happened.what);
  if (!happened.source_writer.empty()) { message.mutable_source_metadata()->set_writer(to_utf8(happened.source_writer)); }
  return message.SerializeAsString();
}

result<event> decode_event(std::span<const std::byte> bytes) {
  if (auto scalars = read_scalars(bytes)) { return *std::move(scalars); }
  tensorflow::Event message;
  if (!parse_message(message, bytes)) { return status(errc::data_loss, "the bytes are not an Event"); }
  event made;
  made.wall_time = message.wall_time();
  made.step = message.step();
  made.source_writer = message.source_metadata().writer();
  const auto& log = message.log_message();
  const auto& session = message.session_log();
  const auto& run = message.tagged_run_metadata();
  switch (message.what_case()) {
    case tensorflow::Event::kFileVersion: made.what = file_version{message.file_version()}; break;
    case tensorflow::Event::kGraphDef: made.what = graph_def{message.graph_def()}; break;
    case tensorflow::Event::kMetaGraphDef: made.what = meta_graph_def{message.meta_graph_def()}; break;
    case tensorflow::Event::kLogMessage: made.what = log_message{static_cast<std::int32_t>(log.level()), log.message()}; break;
    case tensorflow::Event::kSessionLog:
      made.what = session_log{static_cast<session_status>(session.status()), session.checkpoint_path(), session.msg()};
      break;
    case tensorflow::Event::kTaggedRunMetadata: made.what = tagged_run_metadata{run.tag(), run.run_metadata()}; break;
    case tensorflow::Event::kSummary: {
      auto values = read_summary(message.summary());
      if (!values) { return std::move(values).error(); }
      made.what = std::move(values).value();
      break;
    }
    case tensorflow::Event::WHAT_NOT_SET: break;
  }
  return made;
}

}  // namespace stepwell::format
