// SPDX-License-Identifier: Apache-2.0
#include "tool/event_values.hpp"

#include "stepwell/format/text/detail/utf8.hpp"
#include "tool/elements.hpp"
#include "tool/event_hparams.hpp"
#include "tool/text.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <numeric>
#include <type_traits>
#include <variant>

namespace stepwell::tool {
namespace {

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
  with_element_type(value.dtype(), [&]<class T>(std::type_identity<T>) {
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
void write_element(json_writer& json, T value) {
  if constexpr (is_complex_element<T>) {
    json.value(element_text(value));
  } else if constexpr (std::is_arithmetic_v<T>) {
    json.value(value);
  } else {
    json.value(to_float(value));
  }
}

void write_strings(json_writer& json, const tensor& value) {
  json.begin_array();
  std::size_t written = 0;
  for (const auto& one : value.strings()) {
    if (written++ == most_elements) { break; }
    json.value(one);
  }
  json.end_array();
}

void write_tensor(json_writer& json, const tensor& value) {
  if (value.shape().empty() && value.dtype() != dtype::string) {
    each_element(value, 1, [&](auto element) { write_element(json, element); });
    return;
  }
  json.begin_object();
  json.member("dtype", dtype_text(value.dtype()));
  json.key("shape");
  write_array(json, value.shape());
  const bool is_text = value.dtype() == dtype::string && std::ranges::all_of(value.strings(), format::is_utf8);
  if (value.dtype() == dtype::string) { json.member("bytes", string_bytes(value)); }
  if (value.dtype() != dtype::string) {
    json.key("values");
    json.begin_array();
    each_element(value, most_elements, [&](auto element) { write_element(json, element); });
    json.end_array();
  } else if (is_text) {
    json.key("values");
    write_strings(json, value);
  }
  json.end_object();
}

void write_histogram(json_writer& json, const format::histogram_value& value) {
  json.begin_object();
  if (value.num == 0) {  // the file contains the greatest and the least double in this case
    json.key("min");
    json.null();
    json.key("max");
    json.null();
  } else {
    json.member("min", value.min);
    json.member("max", value.max);
  }
  json.member("num", value.num);
  json.member("sum", value.sum);
  json.member("sum_squares", value.sum_squares);
  json.member("buckets", value.buckets.size());
  json.end_object();
}

void write_image(json_writer& json, const format::image_value& value) {
  json.begin_object();
  json.member("height", value.height);
  json.member("width", value.width);
  json.member("colorspace", value.colorspace);
  json.member("bytes", value.encoded.size());
  json.end_object();
}

void write_audio(json_writer& json, const format::audio_value& value) {
  json.begin_object();
  json.member("sample_rate", value.sample_rate);
  json.member("channels", value.num_channels);
  json.member("frames", value.length_frames);
  json.member("content_type", value.content_type);
  json.member("bytes", value.encoded.size());
  json.end_object();
}

std::string_view status_text(format::session_status status) noexcept {
  constexpr std::array<std::string_view, 4> names = {"UNSPECIFIED", "START", "STOP", "CHECKPOINT"};
  const auto number = static_cast<std::uint32_t>(status);
  return number < names.size() ? names[number] : "?";
}

void write_session_log(json_writer& json, const format::session_log& log) {
  json.begin_object();
  json.member("status", status_text(log.status));
  json.member("checkpoint_path", log.checkpoint_path);
  json.member("message", log.message);
  json.end_object();
}

void write_bytes(json_writer& json, std::string_view bytes) {
  json.begin_object();
  json.member("bytes", bytes.size());
  json.end_object();
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

void write_value(json_writer& json, const format::summary_value& value) {
  if (const auto record = hparams_of(value)) { return write_hparams(json, *record); }
  std::visit(overloaded{[&](std::monostate) { json.null(); }, [&](float number) { json.value(number); },
                        [&](const format::histogram_value& histogram) { write_histogram(json, histogram); },
                        [&](const format::image_value& image) { write_image(json, image); },
                        [&](const format::audio_value& sound) { write_audio(json, sound); },
                        [&](const tensor& held) { write_tensor(json, held); }, [&](const auto& other) { write_bytes(json, other.bytes); }},
             value.value);
}

void write_event(json_writer& json, const format::event& happened) {
  std::visit(overloaded{[&](const format::graph_def& graph) { write_bytes(json, graph.bytes); },
                        [&](const format::meta_graph_def& graph) { write_bytes(json, graph.bytes); },
                        [&](const format::tagged_run_metadata& run) {
                          json.begin_object();
                          json.member("tag", run.tag);
                          json.member("bytes", run.run_metadata.size());
                          json.end_object();
                        },
                        [&](const format::session_log& log) { write_session_log(json, log); },
                        [&](const format::file_version& version) { json.value(version.text); },
                        [&](const format::log_message& said) { json.value(said.message); }, [&](const auto&) { json.null(); }},
             happened.what);
}

}  // namespace stepwell::tool
