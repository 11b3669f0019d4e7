// SPDX-License-Identifier: Apache-2.0
#include "tool/event_values.hpp"

#include "stepwell/format/detail/coding.hpp"
#include "stepwell/format/events/detail/summary_values.hpp"
#include "tool/elements.hpp"
#include "tool/output.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <numeric>
#include <ranges>
#include <span>
#include <type_traits>
#include <utility>
#include <variant>

namespace stepwell::tool {
namespace {

using format::hparams_end;
using format::hparams_experiment;
using format::hparams_start;

constexpr std::size_t most_elements = 1000;
constexpr std::size_t most_letters = 60;

template<class... Actions>
struct overloaded : Actions... {
  using Actions::operator()...;
};

std::string_view kind_of_plugin(std::string_view plugin) {
  if (plugin == "scalars") { return "scalar"; }
  if (plugin == "histograms") { return "histogram"; }
  if (plugin == "images") { return "image"; }
  return plugin;
}

/// Calls `act` with each of the first `most` elements of a numeric tensor.
template<class Act>
void each_element(const tensor& value, std::size_t most, Act&& act) {
  visit_dtype(value.dtype(), [&]<class T>(std::type_identity<T>) {
    const auto count = std::min(most, value.bytes().size() / sizeof(T));
    for (std::size_t i = 0; i < count; ++i) { act(element_at<T>(value.bytes(), i)); }
  });
}

std::size_t string_bytes(const tensor& value) {
  return std::accumulate(value.strings().begin(), value.strings().end(), std::size_t{0},
                         [](std::size_t sum, const std::string& one) { return sum + one.size(); });
}

/// Returns the first line, truncated if it is long.
std::string excerpt(std::string_view text) {
  const auto line = text.substr(0, text.find('\n'));
  auto end = std::min(line.size(), most_letters);
  while (end < line.size() && end > most_letters - 4 && (line[end] & '\xc0') == '\x80') { --end; }  // not within a UTF-8 sequence
  return printable(line.substr(0, end)) + (end < text.size() ? "..." : "");
}

std::string tensor_text(const tensor& value) {
  if (value.dtype() == dtype::string && value.strings().size() == 1) { return excerpt(value.strings().front()); }
  std::string text;
  if (element_count(value.shape()) == 1) {
    each_element(value, 1, [&](auto element) { text = element_text(element); });
  }
  if (!text.empty()) { return text; }
  return dtype_text(value.dtype()) + " " + to_string(value.shape()) +
         (value.dtype() == dtype::string ? ", " + size_text(string_bytes(value)) : "");
}

template<class T>
json element_json(T value) {
  if constexpr (is_complex_element<T>) {
    return element_text(value);
  } else if constexpr (std::is_integral_v<T>) {
    return value;
  } else if constexpr (std::is_floating_point_v<T>) {
    return json_number(value);
  } else {
    return json_number(to_float(value));
  }
}

json tensor_json(const tensor& value) {
  auto values = json::array();
  each_element(value, most_elements, [&](auto element) { values.push_back(element_json(element)); });
  const bool is_text = value.dtype() == dtype::string;
  if (value.shape().empty() && !is_text) { return values.empty() ? json() : values.front(); }
  json made{{"dtype", dtype_text(value.dtype())}, {"shape", value.shape()}};
  if (is_text) {
    made["bytes"] = string_bytes(value);
    if (!std::ranges::all_of(value.strings(), format::is_utf8)) { return made; }
    for (const auto& one : value.strings() | std::views::take(most_elements)) { values.push_back(one); }
  }
  made["values"] = std::move(values);
  return made;
}

json histogram_json(const format::histogram_value& value) {
  const bool is_empty = value.num == 0;  // the file contains the greatest and the least double in this case
  return {{"min", is_empty ? json() : json_number(value.min)},
          {"max", is_empty ? json() : json_number(value.max)},
          {"num", json_number(value.num)},
          {"sum", json_number(value.sum)},
          {"sum_squares", json_number(value.sum_squares)},
          {"buckets", value.buckets.size()}};
}

json image_json(const format::image_value& value) {
  return {{"height", value.height}, {"width", value.width}, {"colorspace", value.colorspace}, {"bytes", value.encoded.size()}};
}

json audio_json(const format::audio_value& value) {
  return {{"sample_rate", json_number(value.sample_rate)},
          {"channels", value.num_channels},
          {"frames", value.length_frames},
          {"content_type", value.content_type},
          {"bytes", value.encoded.size()}};
}

json bytes_json(std::string_view bytes) { return {{"bytes", bytes.size()}}; }

std::string_view status_text(format::session_status status) noexcept {
  constexpr std::array<std::string_view, 4> names = {"UNSPECIFIED", "START", "STOP", "CHECKPOINT"};
  const auto number = static_cast<std::uint32_t>(status);
  return number < names.size() ? names[number] : "?";
}

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

/// Returns the decoded hyper-parameters, which are in the metadata of a value with an empty tensor. Empty if there are none, or if they
/// cannot be decoded.
std::optional<format::hparams_record> hparams_of(const format::summary_value& value) {
  if (!value.metadata || value.metadata->plugin_name != "hparams") { return std::nullopt; }
  auto decoded = format::decode_hparams(std::as_bytes(std::span(value.metadata->plugin_content)));
  return decoded ? std::optional(std::move(decoded).value()) : std::nullopt;
}

/// Returns text such as "units=32 rate=0.1", "2 settings, 1 metric", or "ended: success".
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

/// Returns {"session_start": {...}}, {"experiment": {...}} or {"session_end": {...}}.
json hparams_json(const format::hparams_record& record) {
  if (const auto* start = std::get_if<hparams_start>(&record)) {
    const auto settings = json_members(start->hparams, [](const format::hparam_value& setting) {
      return std::visit(overloaded{[](double number) { return json_number(number); }, [](const auto& other) { return json(other); }},
                        setting.get());
    });
    return {{"session_start", {{"hparams", settings}, {"group", start->group_name}, {"start_time", json_number(start->start_time_secs)}}}};
  }
  if (const auto* experiment = std::get_if<hparams_experiment>(&record)) {
    return {{"experiment",
             {{"hparams", json_list(experiment->hparams, [](const auto& name) { return name; })},
              {"metrics", json_list(experiment->metrics, [](const auto& tag) { return tag; })}}}};
  }
  const auto& end = std::get<hparams_end>(record);
  return {{"session_end", {{"status", status_name(end.status)}, {"end_time", json_number(end.end_time_secs)}}}};
}

}  // namespace

std::string_view what_of(const format::event& happened) noexcept {
  constexpr std::array<std::string_view, 8> names = {"nothing",     "file_version", "graph_def",           "summary",
                                                     "log_message", "session_log",  "tagged_run_metadata", "meta_graph_def"};
  return names[happened.what.index()];
}

std::string value_kinds::of(const format::summary_value& value) {
  if (value.metadata && !value.metadata->plugin_name.empty()) { plugins_.emplace(value.tag, value.metadata->plugin_name); }
  constexpr std::array<std::string_view, 8> names = {"nothing", "scalar", "histogram", "image", "audio", "tensor", "tensor", "obsolete"};
  const auto name = names[value.value.index()];
  const auto plugin = plugins_.find(value.tag);
  if (plugin == plugins_.end() || (name != "tensor" && name != "nothing")) { return std::string(name); }
  return printable(kind_of_plugin(plugin->second));
}

std::optional<double> scalar_of(const format::summary_value& value) {
  if (const auto* simple = std::get_if<float>(&value.value)) { return static_cast<double>(*simple); }
  const auto* held = std::get_if<tensor>(&value.value);
  std::optional<double> number;
  if (held != nullptr && element_count(held->shape()) == 1) {
    each_element(*held, 1, [&]<class T>(T element) {
      if constexpr (!is_complex_element<T>) { number = to_double(element); }
    });
  }
  return number;
}

std::map<std::string, std::string> settings_of(const format::summary_value& value) {
  std::map<std::string, std::string> all;
  const auto record = hparams_of(value);
  const auto* start = record ? std::get_if<hparams_start>(&*record) : nullptr;
  if (start == nullptr) { return all; }
  for (const auto& [name, setting] : start->hparams) { all[printable(name)] = setting_text(setting); }
  return all;
}

std::string value_text(const format::summary_value& value) {
  if (const auto record = hparams_of(value)) { return hparams_text(*record); }
  return std::visit(
      overloaded{[](std::monostate) { return std::string(); }, [](float number) { return fmt::format("{}", number); },
                 [](const format::histogram_value& h) {
                   if (h.num == 0) { return std::string("no values"); }
                   return fmt::format("{} to {} ({} values)", number_text(h.min), number_text(h.max), number_text(h.num));
                 },
                 [](const format::image_value& image) {
                   return fmt::format("{}x{}, {}", image.width, image.height, size_text(image.encoded.size()));
                 },
                 [](const format::audio_value& sound) {
                   return fmt::format("{} frames, {}", sound.length_frames, size_text(sound.encoded.size()));
                 },
                 [](const tensor& held) { return tensor_text(held); }, [](const auto& other) { return size_text(other.bytes.size()); }},
      value.value);
}

std::string event_text(const format::event& happened) {
  return std::visit(
      overloaded{[](std::monostate) { return std::string(); }, [](const format::file_version& version) { return excerpt(version.text); },
                 [](const format::summary& values) { return count_text(values.values.size(), "value"); },
                 [](const format::log_message& said) { return excerpt(said.message); },
                 [&](const format::session_log& log) {
                   return std::string(status_text(log.status)) + (log.checkpoint_path.empty() ? "" : " " + excerpt(log.checkpoint_path)) +
                          (log.message.empty() ? "" : " " + excerpt(log.message));
                 },
                 [](const format::tagged_run_metadata& run) { return size_text(run.run_metadata.size()); },
                 [](const auto& graph) { return size_text(graph.bytes.size()); }},
      happened.what);
}

json value_json(const format::summary_value& value) {
  if (const auto record = hparams_of(value)) { return hparams_json(*record); }
  return std::visit(
      overloaded{[](std::monostate) { return json(); }, [](float number) { return json_number(number); },
                 [](const format::histogram_value& histogram) { return histogram_json(histogram); },
                 [](const format::image_value& image) { return image_json(image); },
                 [](const format::audio_value& sound) { return audio_json(sound); }, [](const tensor& held) { return tensor_json(held); },
                 [](const auto& other) { return bytes_json(other.bytes); }},
      value.value);
}

json event_json(const format::event& happened) {
  return std::visit(
      overloaded{[](const format::graph_def& graph) { return bytes_json(graph.bytes); },
                 [](const format::meta_graph_def& graph) { return bytes_json(graph.bytes); },
                 [](const format::tagged_run_metadata& run) { return json{{"tag", run.tag}, {"bytes", run.run_metadata.size()}}; },
                 [](const format::session_log& log) {
                   return json{{"status", status_text(log.status)}, {"checkpoint_path", log.checkpoint_path}, {"message", log.message}};
                 },
                 [](const format::file_version& version) { return json(version.text); },
                 [](const format::log_message& said) { return json(said.message); }, [](const auto&) { return json(); }},
      happened.what);
}

}  // namespace stepwell::tool
