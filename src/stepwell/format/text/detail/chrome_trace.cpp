// SPDX-License-Identifier: Apache-2.0
#include "stepwell/format/text/detail/chrome_trace.hpp"

#include "stepwell/format/text/detail/utf8.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <chrono>
#include <iterator>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

namespace stepwell::format {
namespace {

using std::chrono::nanoseconds;

void append_text(std::string& json, std::string_view text) {
  json += '"';
  for (const char c : to_utf8(text)) {
    if (c == '"' || c == '\\') {
      json += '\\';
      json += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      fmt::format_to(std::back_inserter(json), "\\u{:04x}", static_cast<unsigned>(c));
    } else {
      json += c;
    }
  }
  json += '"';
}

void append_micros(std::string& json, nanoseconds time) {
  const auto count = time.count();
  const auto size = count < 0 ? -count : count;
  fmt::format_to(std::back_inserter(json), "{}{}.{:03}", count < 0 ? "-" : "", size / 1000, size % 1000);
}

/// Begins a new line for an event, after a comma if it is not the first. @pre `json` ends with `[` or with an event.
void begin_event(std::string& json) { json += json.back() == '[' ? "\n" : ",\n"; }

void append_name(std::string& json, std::string_view what, std::int64_t process, std::uint32_t thread, std::string_view name) {
  begin_event(json);
  fmt::format_to(std::back_inserter(json), R"({{"ph":"M","pid":{},"tid":{},"name":"{}","args":{{"name":)", process, thread, what);
  append_text(json, name);
  json += "}}";
}

/// Writes one argument for each key, because readers interpret duplicate keys differently.
void append_arguments(std::string& json, const std::vector<trace_argument>& arguments) {
  std::map<std::string, std::string_view> last;
  for (const auto& [key, text] : arguments) { last[to_utf8(key)] = text; }
  char before = '{';
  for (const auto& [key, text] : last) {
    json += std::exchange(before, ',');
    append_text(json, key);
    json += ':';
    append_text(json, text);
  }
  json += '}';
}

void append_span(std::string& json, const trace_event& span, clock::time_point origin, std::int64_t process) {
  begin_event(json);
  fmt::format_to(std::back_inserter(json), R"({{"ph":"X","pid":{},"tid":{},"ts":)", process, span.thread_id);
  append_micros(json, span.begin - origin);
  json += R"(,"dur":)";
  append_micros(json, span.end - span.begin);
  json += R"(,"name":)";
  append_text(json, span.name);
  json += R"(,"cat":)";
  append_text(json, span.category);
  if (!span.arguments.empty()) {
    json += R"(,"args":)";
    append_arguments(json, span.arguments);
  }
  json += '}';
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

void append_names(std::string& json, const run_metadata& observed, const chrome_trace_options& options) {
  std::map<std::uint32_t, std::string_view> threads;
  for (const auto& span : observed.spans) { threads[span.thread_id] = span.thread_name; }
  append_name(json, "process_name", options.process_id, 0, options.process_name);
  for (const auto& [id, name] : threads) { append_name(json, "thread_name", options.process_id, id, name); }
}

}  // namespace

std::string encode_chrome_trace(const run_metadata& observed, const chrome_trace_options& options) {
  using std::chrono::microseconds;
  std::string json = R"({"traceEvents":[)";
  append_names(json, observed, options);
  for (const auto* span : in_order_of_begin(observed.spans)) { append_span(json, *span, observed.origin, options.process_id); }
  const auto origin = std::chrono::floor<microseconds>(observed.wall_origin.time_since_epoch()).count();
  fmt::format_to(std::back_inserter(json), "\n],\n\"displayTimeUnit\":\"ms\",\n\"otherData\":{{\"origin_micros\":{},\"lost\":{}}}}}\n",
                 origin, observed.lost);
  return json;
}

}  // namespace stepwell::format
