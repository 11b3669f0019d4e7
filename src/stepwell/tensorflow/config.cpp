// SPDX-License-Identifier: Apache-2.0
#include "stepwell/tensorflow/detail/config.hpp"

#include "stepwell/base/clock.hpp"
#include "stepwell/base/trace.hpp"
#include "stepwell/format/detail/messages.hpp"
#include "stepwell/format/proto/run_metadata.pb.h"
#include "stepwell/tensorflow/detail/c_api.hpp"
#include "stepwell/tensorflow/detail/cluster_tasks.hpp"
#include "stepwell/tensorflow/proto/config.pb.h"
#include "stepwell/tensorflow/runtime.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace stepwell::tensorflow::detail {
namespace {

constexpr std::int64_t default_timeout_of_servers_in_ms = 60'000;
constexpr std::size_t metadata_memory_per_byte = 24;

}  // namespace

std::chrono::milliseconds timeout_of(const graph_session_options& options) {
  const auto given = options.runtime.operation_timeout_in_ms;
  return std::chrono::milliseconds(given == 0 && !options.target.master.empty() ? default_timeout_of_servers_in_ms : given);
}

bool runs_in_caller(const graph_session_options& options) {
  return options.runtime.caller_thread.value_or(options.target.config.inter_op_parallelism_threads == 1);
}

namespace {

/// Returns the tasks whose servers a session uses; empty: all tasks of the cluster.
std::vector<std::string> device_filters(const graph_session_options& options, const std::set<std::string>& tasks) {
  const auto& runtime = options.runtime;
  if (runtime.device_filters) { return *runtime.device_filters; }
  const auto own = name_of_task(options.target.master);
  if (own.empty()) { return {}; }
  if (wire::ConfigProto given; given.ParseFromString(runtime.config_proto) && given.device_filters_size() > 0) { return {}; }
  std::set<std::string> all = tasks;
  all.insert(own);  // for operations without a device
  return {all.begin(), all.end()};
}

}  // namespace

std::string config_bytes(const graph_session_options& options, const std::set<std::string>& tasks) {
  const auto& threads = options.target.config;
  const auto& runtime = options.runtime;
  wire::ConfigProto config;
  config.set_intra_op_parallelism_threads(threads.intra_op_parallelism_threads);
  config.set_inter_op_parallelism_threads(runs_in_caller(options) ? -1 : threads.inter_op_parallelism_threads);
  config.set_allow_soft_placement(runtime.allow_soft_placement);
  config.set_log_device_placement(runtime.log_device_placement);
  config.set_operation_timeout_in_ms(timeout_of(options).count());
  for (auto& one : device_filters(options, tasks)) { config.add_device_filters(std::move(one)); }
  return runtime.config_proto + config.SerializeAsString();  // a later field replaces an earlier one
}

run_with_options::run_with_options(const run_options& given) {
  wire::RunOptions encoded;
  if (given.trace_level) { encoded.set_trace_level(static_cast<int>(*given.trace_level)); }
  if (given.timeout_in_ms) { encoded.set_timeout_in_ms(*given.timeout_in_ms); }
  if (given.inter_op_thread_pool) { encoded.set_inter_op_thread_pool(*given.inter_op_thread_pool); }
  if (given.output_partition_graphs) { encoded.set_output_partition_graphs(*given.output_partition_graphs); }
  if (given.report_tensor_allocations_upon_oom) {
    encoded.set_report_tensor_allocations_upon_oom(*given.report_tensor_allocations_upon_oom);
  }
  bytes_ = encoded.SerializeAsString();
  if (bytes_.empty()) { return; }
  options_ = {bytes_.data(), bytes_.size(), nullptr};
  if (given.trace_level.value_or(trace_level::none) != trace_level::none) { metadata_ = functions().new_buffer(); }
}

run_with_options::~run_with_options() {
  if (metadata_ != nullptr) { functions().delete_buffer(metadata_); }
}

void run_with_options::record() const {
  if (metadata_ == nullptr) { return; }
  const auto recorder = current_trace();
  if (!recorder || metadata_->data == nullptr) { return; }
  ::tensorflow::RunMetadata parsed;
  if (!format::parse_message(parsed, {static_cast<const std::byte*>(metadata_->data), metadata_->length}, metadata_memory_per_byte)) {
    return;
  }
  const auto now = recorder->time()->now();
  const auto wall = std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
  const auto at = [&](std::int64_t micros) { return now - std::chrono::microseconds(wall - micros); };
  for (const auto& device : parsed.step_stats().dev_stats()) {
    for (const auto& node : device.node_stats()) {
      trace_event span;
      span.name = node.node_name();
      span.category = "tensorflow";
      span.thread_id = static_cast<std::uint32_t>(node.thread_id());
      span.thread_name = device.device();
      span.begin = at(node.all_start_micros());
      span.end = at(node.all_start_micros() + node.all_end_rel_micros());
      if (!node.timeline_label().empty()) { span.arguments.push_back({"operation", node.timeline_label()}); }
      recorder->add(std::move(span));
    }
  }
}

}  // namespace stepwell::tensorflow::detail
