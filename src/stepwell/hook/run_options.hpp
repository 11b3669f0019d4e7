// SPDX-License-Identifier: Apache-2.0
//
// Options of one run, requested by the caller and by hooks.
// @see contract RUN-7, D-10
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace stepwell {

enum class trace_level { none, software, hardware, full };

struct debug_options {
  std::vector<std::string> debug_tensor_watch_opts = {};
  std::optional<bool> reset_disk_byte_usage = std::nullopt;
};

/// Options of one run. An unset option differs from zero: other requests of the run may set the option. If no request sets the option, the
/// raw session chooses its value. A raw session applies the options that it supports. A session over a model applies the trace level only.
/// Hooks can read all options with `run_values::options()`.
struct run_options {
  std::optional<stepwell::trace_level> trace_level = std::nullopt;
  std::optional<std::int64_t> timeout_in_ms = std::nullopt;
  std::optional<int> inter_op_thread_pool = std::nullopt;
  std::optional<bool> output_partition_graphs = std::nullopt;
  std::optional<bool> report_tensor_allocations_upon_oom = std::nullopt;
  stepwell::debug_options debug_options = {};
};

/// Merges `more` into `into`. The greater trace level, time-out and thread pool number are used. A flag is true if it is true in `into` or
/// in `more`. The debug watches of `more` are appended. A time-out of 0 or less means no time-out, and counts as the longest.
void merge(run_options& into, const run_options& more);

}  // namespace stepwell
