// SPDX-License-Identifier: Apache-2.0
#include "stepwell/format/events/detail/hparams.hpp"

#include "stepwell/format/detail/parse_message.hpp"
#include "stepwell/format/proto/hparams.pb.h"
#include "stepwell/format/text/detail/utf8.hpp"

namespace stepwell::format {
namespace {

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

void write(const hparam_info& info, proto::HParamInfo& message) {
  message.set_name(to_utf8(info.name));
  message.set_display_name(to_utf8(info.display_name));
  message.set_description(to_utf8(info.description));
  message.set_type(static_cast<proto::DataType>(info.type));
  for (const auto& value : info.discrete) { write(value, *message.mutable_domain_discrete()->add_values()); }
  if (info.interval) {
    message.mutable_domain_interval()->set_min_value(info.interval->first);
    message.mutable_domain_interval()->set_max_value(info.interval->second);
  }
}

hparam_info read(const proto::HParamInfo& message) {
  hparam_info info{message.name(), message.display_name(), message.description(), static_cast<hparam_type>(message.type()), {},
                   std::nullopt};
  for (const auto& value : message.domain_discrete().values()) {
    if (auto known = read(value)) { info.discrete.push_back(*std::move(known)); }
  }
  if (message.has_domain_interval()) { info.interval = {message.domain_interval().min_value(), message.domain_interval().max_value()}; }
  return info;
}

void write(const metric_info& info, proto::MetricInfo& message) {
  message.mutable_name()->set_group(to_utf8(info.group));
  message.mutable_name()->set_tag(to_utf8(info.tag));
  message.set_display_name(to_utf8(info.display_name));
  message.set_description(to_utf8(info.description));
  message.set_dataset_type(static_cast<proto::DatasetType>(info.dataset_type));
}

metric_info read(const proto::MetricInfo& message) {
  return {message.name().group(), message.name().tag(), message.display_name(), message.description(),
          static_cast<std::int32_t>(message.dataset_type())};
}

// A visitor that writes a record into the message.
struct record_writer {
  proto::HParamsPluginData& message;

  void operator()(const hparams_experiment& record) const {
    auto& experiment = *message.mutable_experiment();
    experiment.set_name(to_utf8(record.name));
    experiment.set_description(to_utf8(record.description));
    experiment.set_user(to_utf8(record.user));
    experiment.set_time_created_secs(record.time_created_secs);
    for (const auto& info : record.hparams) { write(info, *experiment.add_hparam_infos()); }
    for (const auto& info : record.metrics) { write(info, *experiment.add_metric_infos()); }
  }
  void operator()(const hparams_start& record) const {
    auto& start = *message.mutable_session_start_info();
    for (const auto& [name, value] : record.hparams) {
      auto& entry = *start.add_hparams();
      entry.set_key(to_utf8(name));
      write(value, *entry.mutable_value());
    }
    start.set_model_uri(to_utf8(record.model_uri));
    start.set_monitor_url(to_utf8(record.monitor_url));
    start.set_group_name(to_utf8(record.group_name));
    start.set_start_time_secs(record.start_time_secs);
  }
  void operator()(const hparams_end& record) const {
    auto& end = *message.mutable_session_end_info();
    end.set_status(static_cast<proto::Status>(record.status));
    end.set_end_time_secs(record.end_time_secs);
  }
};

hparams_experiment read(const proto::Experiment& message) {
  hparams_experiment record{message.name(), message.description(), message.user(), message.time_created_secs(), {}, {}};
  for (const auto& info : message.hparam_infos()) { record.hparams.push_back(read(info)); }
  for (const auto& info : message.metric_infos()) { record.metrics.push_back(read(info)); }
  return record;
}

hparams_start read(const proto::SessionStartInfo& message) {
  hparams_start record{{}, message.model_uri(), message.monitor_url(), message.group_name(), message.start_time_secs()};
  for (const auto& entry : message.hparams()) {
    if (auto known = read(entry.value())) { record.hparams.insert_or_assign(entry.key(), *std::move(known)); }
  }
  return record;
}

const char* tag_of(const hparams_record& record) {
  switch (record.index()) {
    case 0: return "_hparams_/experiment";
    case 1: return "_hparams_/session_start_info";
    default: return "_hparams_/session_end_info";
  }
}

}  // namespace

std::string encode_hparams(const hparams_record& record) {
  proto::HParamsPluginData message;
  std::visit(record_writer{message}, record);
  return message.SerializeAsString();
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

summary_value make_hparams_value(const hparams_record& record) {
  return {tag_of(record), "", summary_metadata{"hparams", encode_hparams(record), "", "", data_class::unknown},
          tensor(dtype::float32, {0})};
}

}  // namespace stepwell::format
