// SPDX-License-Identifier: Apache-2.0
#include "tool/event_hparams.hpp"

#include "tool/text.hpp"

#include <fmt/format.h>
#include <array>
#include <span>
#include <type_traits>
#include <variant>

namespace stepwell::tool {
namespace {

using format::hparams_end;
using format::hparams_experiment;
using format::hparams_start;

std::string_view status_name(format::hparams_status status) {
  constexpr std::array<std::string_view, 4> names = {"unknown", "success", "failure", "running"};
  const auto number = static_cast<std::uint32_t>(status);
  return number < names.size() ? names[number] : names[0];
}

std::string setting_text(const format::hparam_value& setting) {
  return std::visit(
      [](const auto& held) {
        if constexpr (std::is_same_v<std::remove_cvref_t<decltype(held)>, std::string>) {
          return printable(held);
        } else {
          return fmt::format("{}", held);
        }
      },
      setting.get());
}

void write_start(json_writer& json, const hparams_start& start) {
  json.key("hparams");
  json.begin_object();
  for (const auto& [name, setting] : start.hparams) {
    json.key(name);
    std::visit([&](const auto& held) { json.value(held); }, setting.get());
  }
  json.end_object();
  json.member("group", start.group_name);
  json.member("start_time", start.start_time_secs);
}

void write_experiment(json_writer& json, const hparams_experiment& experiment) {
  json.key("hparams");
  json.begin_array();
  for (const auto& info : experiment.hparams) { json.value(info.name); }
  json.end_array();
  json.key("metrics");
  json.begin_array();
  for (const auto& info : experiment.metrics) { json.value(info.tag); }
  json.end_array();
}

}  // namespace

std::optional<format::hparams_record> hparams_of(const format::summary_value& value) {
  if (!value.metadata || value.metadata->plugin_name != "hparams") { return std::nullopt; }
  auto decoded = format::decode_hparams(std::as_bytes(std::span(value.metadata->plugin_content)));
  return decoded ? std::optional(std::move(decoded).value()) : std::nullopt;
}

std::string hparams_text(const format::hparams_record& record) {
  if (const auto* experiment = std::get_if<hparams_experiment>(&record)) {
    return count_text(experiment->hparams.size(), "setting") + ", " + count_text(experiment->metrics.size(), "metric");
  }
  if (const auto* end = std::get_if<hparams_end>(&record)) { return fmt::format("ended: {}", status_name(end->status)); }
  std::string text;
  for (const auto& [name, setting] : std::get<hparams_start>(record).hparams) {
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", printable(name), setting_text(setting));
  }
  return text;
}

void write_hparams(json_writer& json, const format::hparams_record& record) {
  json.begin_object();
  const auto* start = std::get_if<hparams_start>(&record);
  const auto* experiment = std::get_if<hparams_experiment>(&record);
  json.key(start != nullptr ? "session_start" : experiment != nullptr ? "experiment" : "session_end");
  json.begin_object();
  if (start != nullptr) {
    write_start(json, *start);
  } else if (experiment != nullptr) {
    write_experiment(json, *experiment);
  } else {
    const auto& end = std::get<hparams_end>(record);
    json.member("status", status_name(end.status));
    json.member("end_time", end.end_time_secs);
  }
  json.end_object();
  json.end_object();
}

}  // namespace stepwell::tool
