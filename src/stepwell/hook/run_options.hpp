// SPDX-License-Identifier: Apache-2.0
//
// How one run is to be done, asked for by the caller and by hooks (contract RUN-7, D-10).
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

/// What is not said is not zero: it gives way to whatever others say, and is left to the raw session if nobody does.
/// A raw session heeds what it can. A model session heeds the trace level; its model finds the rest in its hooks.
struct run_options {
  std::optional<stepwell::trace_level> trace_level = std::nullopt;
  std::optional<std::int64_t> timeout_in_ms = std::nullopt;
  std::optional<int> inter_op_thread_pool = std::nullopt;
  std::optional<bool> output_partition_graphs = std::nullopt;
  std::optional<bool> report_tensor_allocations_upon_oom = std::nullopt;
  stepwell::debug_options debug_options = {};
};

/// Adds what `more` says: the greater level, time-out and pool, either of two flags, watches after those there. A time-out
/// of 0 is none at all, and the greatest.
void merge(run_options& into, const run_options& more);

}  // namespace stepwell
