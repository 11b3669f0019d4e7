// SPDX-License-Identifier: Apache-2.0
#include "stepwell/protocol/run_options.hpp"

#include <algorithm>

namespace stepwell {
namespace {

template<class T>
void take_greater(std::optional<T>& into, const std::optional<T>& more) {
  if (more) { into = into ? std::max(*into, *more) : *more; }
}
void take_either(std::optional<bool>& into, const std::optional<bool>& more) {
  if (more) { into = into.value_or(false) || *more; }
}

/// Takes the longer time-out. Zero and negative values mean "no time-out", which is the longest.
void take_longer(std::optional<std::int64_t>& into, const std::optional<std::int64_t>& more) {
  if (!more) { return; }
  const bool is_endless = *more <= 0 || (into && *into <= 0);
  into = is_endless ? 0 : std::max(into.value_or(*more), *more);
}

}  // namespace

void merge(run_options& into, const run_options& more) {
  take_greater(into.trace_level, more.trace_level);
  take_longer(into.timeout_in_ms, more.timeout_in_ms);
  take_greater(into.inter_op_thread_pool, more.inter_op_thread_pool);
  take_either(into.output_partition_graphs, more.output_partition_graphs);
  take_either(into.report_tensor_allocations_upon_oom, more.report_tensor_allocations_upon_oom);
}

}  // namespace stepwell
