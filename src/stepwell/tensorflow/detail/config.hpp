// SPDX-License-Identifier: Apache-2.0
//
// Encoded options of sessions and runs, and the recording of traced runs.
#pragma once

#include "stepwell/protocol/run_options.hpp"
#include "stepwell/tensorflow/detail/c_api.hpp"
#include "stepwell/tensorflow/graph_session.hpp"

#include <chrono>
#include <cstdint>
#include <set>
#include <string>

namespace stepwell::tensorflow::detail {

/// Returns the ConfigProto of a session over a graph whose devices name these jobs and tasks, such as "/job:ps" or "/job:ps/task:0".
[[nodiscard]] std::string config_bytes(const graph_session_options& options, const std::set<std::string>& tasks);
/// Returns true if runs execute their operations in the calling thread.
[[nodiscard]] bool runs_in_caller(const graph_session_options& options);
/// Returns the time-out of each run of a session. 0: none.
[[nodiscard]] std::chrono::milliseconds timeout_of(const graph_session_options& options);

/// The options of one run, and room for its metadata if the run is traced.
class run_with_options {
public:
  explicit run_with_options(const run_options& given);
  run_with_options(const run_with_options&) = delete;
  run_with_options& operator=(const run_with_options&) = delete;
  ~run_with_options();

  [[nodiscard]] const c::buffer* options() const noexcept { return options_.data == nullptr ? nullptr : &options_; }
  [[nodiscard]] c::buffer* metadata() const noexcept { return metadata_; }
  /// Adds a span for each operation of a traced run to the trace of this thread.
  void record() const;

private:
  std::string bytes_;
  c::buffer options_{nullptr, 0, nullptr};
  c::buffer* metadata_ = nullptr;
};

}  // namespace stepwell::tensorflow::detail
