// SPDX-License-Identifier: Apache-2.0
//
// Options of one run, requested by the caller and by hooks.
// @see contract RUN-7, D-10
#pragma once

#include <cstdint>
#include <optional>

namespace stepwell {

enum class trace_level { none, software, hardware, full };

/// Options of one run. The caller and the hooks of a run may all set options; the session merges them with `merge`. If none of them sets an
/// option, the raw session (the object that executes the step) chooses its value. An unset option is therefore not the same as zero. A raw
/// session applies the options that it supports: a session over a model applies only the trace level. Hooks can read the merged options
/// with `run_values::options()`.
struct run_options {
  std::optional<stepwell::trace_level> trace_level = std::nullopt;
  std::optional<std::int64_t> timeout_in_ms = std::nullopt;
  std::optional<int> inter_op_thread_pool = std::nullopt;
  std::optional<bool> output_partition_graphs = std::nullopt;
  std::optional<bool> report_tensor_allocations_upon_oom = std::nullopt;
};

/// Merges `more` into `into`. If both set an option, `into` gets the greater trace level, time-out or thread pool number. A time-out of 0
/// or less means no time-out, and counts as the longest. A flag becomes true if it is true in `into` or in `more`. An option that is
/// unset in both stays unset.
void merge(run_options& into, const run_options& more);

}  // namespace stepwell
