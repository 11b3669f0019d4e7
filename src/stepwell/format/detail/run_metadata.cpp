// SPDX-License-Identifier: Apache-2.0
#include "stepwell/format/detail/run_metadata.hpp"

#include "stepwell/format/detail/coding.hpp"
#include "stepwell/format/proto/run_metadata.pb.h"

#include <fmt/format.h>
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <map>
#include <vector>

namespace stepwell::format {
namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;

std::map<std::uint32_t, std::string_view> threads_of(const run_metadata& observed) {
  std::map<std::uint32_t, std::string_view> names;
  for (const auto& span : observed.spans) { names[span.thread_id] = span.thread_name; }
  return names;
}

/// Returns the label of a span in the form that TensorFlow's timeline parses: "run = session(step=7)".
std::string label_of(const trace_event& span) {
  std::string text = span.name + " = " + span.category + "(";
  for (const auto& [key, value] : span.arguments) {
    if (text.back() != '(') { text += ", "; }
    text += key + "=" + value;
  }
  return to_utf8(text + ")");
}

template<class Unit>
std::int64_t count(nanoseconds length) {
  return std::chrono::floor<Unit>(length).count();
}

void write(const trace_event& span, nanoseconds start, tensorflow::NodeExecStats& node) {
  const nanoseconds length = span.end - span.begin;
  node.set_node_name(to_utf8(span.name));
  node.set_timeline_label(label_of(span));
  node.set_thread_id(span.thread_id);
  node.set_scheduled_micros(count<microseconds>(start));
  node.set_all_start_micros(count<microseconds>(start));
  node.set_op_end_rel_micros(count<microseconds>(length));
  node.set_all_end_rel_micros(count<microseconds>(length));
  node.set_scheduled_nanos(start.count());
  node.set_all_start_nanos(start.count());
  node.set_op_end_rel_nanos(length.count());
  node.set_all_end_rel_nanos(length.count());
}

std::string json_string(std::string_view text) {
  std::string json = "\"";
  for (const char c : to_utf8(text)) {
    if (static_cast<unsigned char>(c) < 0x20) {
      fmt::format_to(std::back_inserter(json), "\\u{:04x}", static_cast<unsigned>(c));
      continue;
    }
    if (c == '"' || c == '\\') { json += '\\'; }
    json += c;
  }
  return json += '"';
}

std::string micros_text(nanoseconds time) {
  const auto size = std::abs(time.count());
  return fmt::format("{}{}.{:03}", time.count() < 0 ? "-" : "", size / 1000, size % 1000);
}

/// Returns one argument for each key, because readers interpret duplicate keys differently.
std::string arguments_of(const trace_event& span) {
  std::map<std::string, std::string_view> last;
  for (const auto& [key, text] : span.arguments) { last[to_utf8(key)] = text; }
  std::string json;
  for (const auto& [key, text] : last) { json += fmt::format("{}{}:{}", json.empty() ? '{' : ',', json_string(key), json_string(text)); }
  return json + '}';
}

std::vector<const trace_event*> in_order_of_begin(const std::vector<trace_event>& spans) {
  std::vector<const trace_event*> order;
  for (const auto& span : spans) { order.push_back(&span); }
  // Of two spans with the same times, the one that was recorded later is the outer one.
  std::ranges::sort(order, [](const trace_event* a, const trace_event* b) {
    if (a->begin != b->begin) { return a->begin < b->begin; }
    return a->end != b->end ? a->end > b->end : a > b;
  });
  return order;
}

}  // namespace

std::string encode_run_metadata(const run_metadata& observed, std::string_view device) {
  const nanoseconds wall = observed.wall_origin.time_since_epoch();
  tensorflow::RunMetadata message;
  auto& stats = *message.mutable_step_stats()->add_dev_stats();
  stats.set_device(to_utf8(device));
  for (const auto& span : observed.spans) { write(span, wall + (span.begin - observed.origin), *stats.add_node_stats()); }
  for (const auto& [id, name] : threads_of(observed)) {
    auto& entry = *stats.add_thread_names();
    entry.set_key(id);
    entry.set_value(to_utf8(name));
  }
  return message.SerializeAsString();
}

std::string encode_chrome_trace(const run_metadata& observed) {
  // The process has the number 1, because viewers treat 0 as the idle process.
  std::string json = "{\"traceEvents\":[\n";
  json += R"({"ph":"M","pid":1,"tid":0,"name":"process_name","args":{"name":"stepwell"}})";
  const auto out = std::back_inserter(json);
  for (const auto& [id, name] : threads_of(observed)) {
    json += ",\n";
    fmt::format_to(out, R"({{"ph":"M","pid":1,"tid":{},"name":"thread_name","args":{{"name":{}}}}})", id, json_string(name));
  }
  for (const auto* span : in_order_of_begin(observed.spans)) {
    json += ",\n";
    fmt::format_to(out, R"({{"ph":"X","pid":1,"tid":{},"ts":{},"dur":{},"name":{},"cat":{})", span->thread_id,
                   micros_text(span->begin - observed.origin), micros_text(span->end - span->begin), json_string(span->name),
                   json_string(span->category));
    if (!span->arguments.empty()) { fmt::format_to(out, R"(,"args":{})", arguments_of(*span)); }
    json += '}';
  }
  fmt::format_to(out, "\n],\n\"displayTimeUnit\":\"ms\",\n\"otherData\":{{\"origin_micros\":{},\"lost\":{}}}}}\n",
                 count<microseconds>(observed.wall_origin.time_since_epoch()), observed.lost);
  return json;
}

}  // namespace stepwell::format
