// SPDX-License-Identifier: Apache-2.0
#include "stepwell/format/events/detail/run_metadata.hpp"

#include "stepwell/format/proto/run_metadata.pb.h"
#include "stepwell/format/text/detail/utf8.hpp"

#include <chrono>
#include <cstdint>
#include <map>

namespace stepwell::format {
namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;

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

}  // namespace

std::string encode_run_metadata(const run_metadata& observed, std::string_view device) {
  const nanoseconds wall = observed.wall_origin.time_since_epoch();
  tensorflow::RunMetadata message;
  auto& stats = *message.mutable_step_stats()->add_dev_stats();
  stats.set_device(to_utf8(device));
  std::map<std::uint32_t, std::string_view> threads;
  for (const auto& span : observed.spans) {
    write(span, wall + (span.begin - observed.origin), *stats.add_node_stats());
    threads[span.thread_id] = span.thread_name;
  }
  for (const auto& [id, name] : threads) {
    auto& entry = *stats.add_thread_names();
    entry.set_key(id);
    entry.set_value(to_utf8(name));
  }
  return message.SerializeAsString();
}

}  // namespace stepwell::format
