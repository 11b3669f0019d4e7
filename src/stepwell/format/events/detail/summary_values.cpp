// SPDX-License-Identifier: Apache-2.0
#include "stepwell/format/events/detail/summary_values.hpp"

#include "stepwell/format/detail/coding.hpp"
#include "stepwell/format/detail/messages.hpp"
#include "stepwell/format/proto/hparams.pb.h"

#include <bit>
#include <cassert>
#include <cstring>
#include <optional>
#include <utility>

namespace stepwell::format {
namespace {

summary_value with_plugin(std::string tag, std::string plugin, tensor value, std::string content = {}) {
  return {std::move(tag), "", summary_metadata{std::move(plugin), std::move(content), "", "", data_class::unknown}, std::move(value)};
}

namespace proto = tensorboard::hparams;

void write(const hparam_value& value, google::protobuf::Value& message) {
  if (const auto* number = std::get_if<double>(&value.get())) {
    message.set_number_value(*number);
  } else if (const auto* text = std::get_if<std::string>(&value.get())) {
    message.set_string_value(to_utf8(*text));
  } else {
    message.set_bool_value(std::get<bool>(value.get()));
  }
}

std::optional<hparam_value> read(const google::protobuf::Value& message) {
  switch (message.kind_case()) {
    case google::protobuf::Value::kNumberValue: return hparam_value(message.number_value());
    case google::protobuf::Value::kStringValue: return hparam_value(message.string_value());
    case google::protobuf::Value::kBoolValue: return hparam_value(message.bool_value());
    default: return std::nullopt;
  }
}

hparams_experiment read(const proto::Experiment& message) {
  hparams_experiment record;
  for (const auto& info : message.hparam_infos()) { record.hparams.push_back(info.name()); }
  for (const auto& info : message.metric_infos()) { record.metrics.push_back(info.name().tag()); }
  return record;
}

hparams_start read(const proto::SessionStartInfo& message) {
  hparams_start record{{}, message.group_name(), message.start_time_secs()};
  for (const auto& entry : message.hparams()) {
    if (auto known = read(entry.value())) { record.hparams.insert_or_assign(entry.key(), *std::move(known)); }
  }
  return record;
}

summary_value value_of(std::string tag, const proto::HParamsPluginData& message) {
  return with_plugin(std::move(tag), "hparams", tensor(dtype::float32, {0}), message.SerializeAsString());
}

// The bytes before the four bytes of the number, in a tensor of dtype float and rank 0 (fields 1, 2 and 4).
constexpr char tensor_before[] = {0x42, 10, 0x08, 0x01, 0x12, 0x00, 0x22, 0x04};
// The metadata after the tensor (field 9): plugin_data (1) with a plugin_name (1).
constexpr char metadata[] = {0x4a, 11, 0x0a, 9, 0x0a, 7, 's', 'c', 'a', 'l', 'a', 'r', 's'};

constexpr std::byte wall_time_tag{0x09};     // field 1, 64 bits
constexpr std::byte step_tag{0x10};          // field 2, varint
constexpr std::byte summary_tag{0x2a};       // field 5, bytes
constexpr std::byte value_tag{0x0a};         // field 1, bytes
constexpr std::byte tag_tag{0x0a};           // field 1, bytes
constexpr std::byte simple_value_tag{0x15};  // field 2, 32 bits

constexpr std::size_t varint_size(std::uint64_t value) noexcept { return (static_cast<std::size_t>(std::bit_width(value | 1)) + 6) / 7; }

// Returns the size of a length-delimited field with its tag and its length. Empty messages are written, too; empty strings are omitted.
constexpr std::size_t field_size(std::size_t size) noexcept { return 1 + varint_size(size) + size; }

bool is_written(double value) noexcept { return std::bit_cast<std::uint64_t>(value) != 0; }

// An output that writes consecutive items.
class pen {
public:
  explicit pen(std::byte* at) noexcept : at_(at) {}

  [[nodiscard]] const std::byte* at() const noexcept { return at_; }
  void byte(std::byte value) noexcept { *at_++ = value; }
  void varint(std::uint64_t value) noexcept {
    for (; value >= 0x80; value >>= 7) { byte(static_cast<std::byte>(value | 0x80)); }
    byte(static_cast<std::byte>(value));
  }
  template<class T>
  void fixed(T value) noexcept {
    store_little(at_, value);
    at_ += sizeof value;
  }
  void raw(const void* bytes, std::size_t size) noexcept {
    if (size != 0) { std::memcpy(at_, bytes, size); }
    at_ += size;
  }

private:
  std::byte* at_;
};

// An input of consecutive items. Each function returns false if the next item is another one.
class field_reader {
public:
  explicit field_reader(std::string_view in) noexcept : in_(in) {}

  [[nodiscard]] bool is_done() const noexcept { return in_.empty(); }
  [[nodiscard]] bool byte(std::byte value) noexcept {
    if (in_.empty() || static_cast<std::byte>(in_.front()) != value) { return false; }
    in_.remove_prefix(1);
    return true;
  }
  template<class T>
  [[nodiscard]] bool fixed(T& value) noexcept {
    if (in_.size() < sizeof value) { return false; }
    value = read_fixed<T>(in_);
    in_.remove_prefix(sizeof value);
    return true;
  }
  [[nodiscard]] bool varint(std::uint64_t& value) noexcept {
    const auto found = take_varint(in_);
    value = found.value_or(0);
    return found.has_value();
  }
  [[nodiscard]] bool part(std::string_view& text) noexcept {
    std::uint64_t size = 0;
    if (!varint(size) || size > in_.size()) { return false; }
    text = in_.substr(0, static_cast<std::size_t>(size));
    in_.remove_prefix(text.size());
    return true;
  }

private:
  std::string_view in_;
};

/// Reads a Summary.Value with a tag and a number.
bool read_scalar(std::string_view bytes, scalar_event& into) noexcept {
  field_reader in(bytes);
  std::uint32_t number = 0;
  if (in.byte(tag_tag) && !(in.part(into.tag) && is_utf8(into.tag))) { return false; }
  if (!in.byte(simple_value_tag) || !in.fixed(number) || !in.is_done()) { return false; }
  into.value = std::bit_cast<float>(number);
  return true;
}

std::size_t value_size_of(const scalar_event& happened, summary_style style, bool with_metadata) noexcept {
  const auto tag = happened.tag.empty() ? 0 : field_size(happened.tag.size());
  if (style == summary_style::simple) { return tag + 1 + sizeof(float); }
  return tag + sizeof tensor_before + sizeof(float) + (with_metadata ? sizeof metadata : 0);
}

}  // namespace

summary_value make_scalar_value(std::string tag, float value, summary_style style) {
  if (style == summary_style::simple) { return {std::move(tag), "", std::nullopt, value}; }
  return with_plugin(std::move(tag), "scalars", tensor::scalar(value));
}

summary_value make_histogram_value(std::string tag, const kernel::growing_histogram& histogram) {
  const auto& stats = histogram.stats;
  histogram_value value{stats.min,        stats.max,       static_cast<double>(stats.count), stats.sum, stats.sum_squares,
                        histogram.limits, histogram.counts};
  return {std::move(tag), "", std::nullopt, std::move(value)};
}

summary_value make_histogram_value(std::string tag, const kernel::equal_histogram& histogram) {
  tensor rows(dtype::float64, {static_cast<std::int64_t>(histogram.buckets.size()), 3});
  auto at = rows.as<double>().begin();
  for (const auto& bucket : histogram.buckets) {
    for (const double number : {bucket.left, bucket.right, bucket.count}) { *at++ = number; }
  }
  return with_plugin(std::move(tag), "histograms", std::move(rows));
}

summary_value make_text_value(std::string tag, std::string text) {
  tensor value(dtype::string, {});
  value.strings()[0] = std::move(text);
  return with_plugin(std::move(tag), "text", std::move(value));
}

summary_value make_image_value(std::string tag, std::int32_t width, std::int32_t height, int channels, std::string encoded,
                               summary_style style) {
  if (style == summary_style::simple) {
    return {std::move(tag), "", std::nullopt, image_value{height, width, channels, std::move(encoded)}};
  }
  tensor value(dtype::string, {3});
  value.strings()[0] = std::to_string(width);
  value.strings()[1] = std::to_string(height);
  value.strings()[2] = std::move(encoded);
  return with_plugin(std::move(tag), "images", std::move(value));
}

result<hparams_record> decode_hparams(std::span<const std::byte> bytes) {
  proto::HParamsPluginData message;
  if (!parse_message(message, bytes)) { return status(errc::data_loss, "the bytes are not an HParamsPluginData"); }
  switch (message.data_case()) {
    case proto::HParamsPluginData::kExperiment: return hparams_record(read(message.experiment()));
    case proto::HParamsPluginData::kSessionStartInfo: return hparams_record(read(message.session_start_info()));
    case proto::HParamsPluginData::kSessionEndInfo:
      return hparams_record(
          hparams_end{static_cast<hparams_status>(message.session_end_info().status()), message.session_end_info().end_time_secs()});
    case proto::HParamsPluginData::DATA_NOT_SET: break;
  }
  return status(errc::data_loss, "the HParamsPluginData is empty");
}

summary_value make_hparams_value(const hparams_start& record) {
  proto::HParamsPluginData message;
  auto& start = *message.mutable_session_start_info();
  for (const auto& [name, value] : record.hparams) {
    auto& entry = *start.add_hparams();
    entry.set_key(to_utf8(name));
    write(value, *entry.mutable_value());
  }
  start.set_group_name(to_utf8(record.group_name));
  start.set_start_time_secs(record.start_time_secs);
  return value_of("_hparams_/session_start_info", message);
}

summary_value make_hparams_value(const hparams_end& record) {
  proto::HParamsPluginData message;
  auto& end = *message.mutable_session_end_info();
  end.set_status(static_cast<proto::Status>(record.status));
  end.set_end_time_secs(record.end_time_secs);
  return value_of("_hparams_/session_end_info", message);
}

bool decode_scalars(std::span<const std::byte> bytes, std::vector<scalar_event>& scalars) {
  constexpr std::size_t most_bytes = std::size_t{256} << 10;  // a value can take 50 times as much memory as its bytes
  if (bytes.size() > most_bytes) { return false; }
  field_reader in({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  std::uint64_t wall_time = 0;
  std::uint64_t step = 0;
  std::string_view summary;
  if (in.byte(wall_time_tag) && !in.fixed(wall_time)) { return false; }
  if (in.byte(step_tag) && !in.varint(step)) { return false; }
  if (!in.byte(summary_tag) || !in.part(summary) || summary.empty() || !in.is_done()) { return false; }
  const auto before = scalars.size();
  std::string_view value;
  for (field_reader values(summary); !values.is_done();) {
    auto& next = scalars.emplace_back(scalar_event{std::bit_cast<double>(wall_time), static_cast<std::int64_t>(step), {}, 0});
    if (values.byte(value_tag) && values.part(value) && read_scalar(value, next)) { continue; }
    scalars.resize(before);
    return false;
  }
  return true;
}

scalar_encoder::scalar_encoder(const scalar_event& happened, summary_style style, bool with_metadata) noexcept
    : event_(happened), style_(style), with_metadata_(with_metadata), value_size_(value_size_of(happened, style, with_metadata)),
      summary_size_(field_size(value_size_)), size_(field_size(summary_size_)) {
  if (is_written(happened.wall_time)) { size_ += 1 + sizeof(double); }
  if (happened.step != 0) { size_ += 1 + varint_size(static_cast<std::uint64_t>(happened.step)); }
}

void scalar_encoder::write(std::span<std::byte> out) const noexcept {
  assert(out.size() == size_);
  pen to(out.data());
  if (is_written(event_.wall_time)) {
    to.byte(wall_time_tag);
    to.fixed(std::bit_cast<std::uint64_t>(event_.wall_time));
  }
  if (event_.step != 0) {
    to.byte(step_tag);
    to.varint(static_cast<std::uint64_t>(event_.step));
  }
  to.byte(summary_tag);
  to.varint(summary_size_);
  to.byte(value_tag);
  to.varint(value_size_);
  if (!event_.tag.empty()) {
    to.byte(tag_tag);
    to.varint(event_.tag.size());
    to.raw(event_.tag.data(), event_.tag.size());
  }
  const auto number = std::bit_cast<std::uint32_t>(event_.value);
  if (style_ == summary_style::simple) {
    to.byte(simple_value_tag);
    to.fixed(number);
  } else {
    to.raw(tensor_before, sizeof tensor_before);
    to.fixed(number);
    if (with_metadata_) { to.raw(metadata, sizeof metadata); }
  }
  assert(to.at() == out.data() + out.size());
}

}  // namespace stepwell::format
