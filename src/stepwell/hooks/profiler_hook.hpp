// SPDX-License-Identifier: Apache-2.0
//
// A hook that records timelines of single runs: which activity took how long, on which thread.
// @see contract HOOK-PROF
#pragma once

#include "stepwell/base/cadence.hpp"
#include "stepwell/hook/hook.hpp"
#include "stepwell/hook/run_args.hpp"
#include "stepwell/hook/run_context.hpp"
#include "stepwell/hook/run_options.hpp"
#include "stepwell/summary/writer.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace stepwell {

class coordinator;
namespace detail {
class profiler_work;
}

/// Options of `profiler_hook`. One of the periods is required. If both are above zero, the seconds are used, and a warning is logged.
/// @see contract D-8
struct profiler_options {
  /// Periods between traced runs.
  setting<std::int64_t> save_steps = {};
  setting<seconds_value> save_secs = {};
  /// The directory of the timelines and the event file. If empty, these are written to the session's directory of event files. If the
  /// session has no such directory, the current directory of the process is used.
  std::string output_dir = {};
  /// Options of the event file, unless it is the session's. The timelines are written with the same file system.
  summary::writer_options events = {};
};

/// Traces one run in each period. After a traced run, `timeline-STEP.json` in `output_dir` is a complete file for Perfetto and
/// chrome://tracing, and the event file contains the run's metadata with the tag `step_STEP`. Both contain these spans, with the names of
/// their threads: the calls of hooks, the run with each `trace_span` that the model opens, and the boundary after the run with the copy of
/// a snapshot. The first run is never traced.
///
/// * Every traced run has its own file. It exists when the call that executed the run returns. Times are relative to the beginning of the
///   session.
/// * Spans that end after the file was written appear in the next file. These are mostly spans of background work that the run started,
///   such as writing a checkpoint or summaries. When the session closes, the last file is written again with the remaining spans.
/// * `before_run` of hooks that precede this one is not recorded.
/// * If a step is repeated after a recovery, its file is replaced, and the tag in the event file is `step_STEP_2`.
/// * A failed write is logged as a warning and does not end the training. There is one exception: if other hooks write to the same event
///   file, its failure is thrown at the next boundary, as usual.
///
/// @cost A run that is not traced: two comparisons, a few comparisons at each point of a hook and, with `save_secs`, a relaxed load. A
///   traced run blocks on the disk.
class profiler_hook {
public:
  static constexpr auto phase = hook_phase::observe;

  /// Opens the event file in `output_dir`. An unusable directory is therefore detected at once. If `output_dir` is empty, the file is opened
  /// when the session is created.
  /// @errors `invalid_argument_error` unless one period is above zero; failures to open the file.
  /// @see contract HOOK-PROF-2
  explicit profiler_hook(profiler_options options);

  void after_create_session(const session_requests& session, coordinator& threads);

  std::optional<run_args<fetch_pack<>, feed_pack<>, run_options>> before_run(auto& context) {
    step_before_ = context.global_step();
    is_due_ = !is_first_ && timer_.should_trigger_for_step(step_before_ + 1);
    if (!is_due_) [[likely]] { return std::nullopt; }
    start_trace(context);
    return run_args{.options = run_options{.trace_level = trace_level::full}};
  }

  void after_run(auto& context, const auto&) {
    if (is_due_) [[unlikely]] {
      expect_timeline(context.global_step());
    } else if (is_first_) [[unlikely]] {
      timer_.update_last_triggered_step(step_before_);
      is_first_ = false;
    }
  }

private:
  void open_events(const session_requests& session);
  void start_trace(const session_requests& session) const;
  void expect_timeline(std::int64_t step);

  cadence period_;
  summary::writer_options events_;
  second_or_step_timer timer_;
  std::shared_ptr<detail::profiler_work> work_;  // null until the event file is open
  std::int64_t step_before_ = 0;                 // global step before the current run
  bool is_first_ = true;                         // true until a run of this session has completed
  bool is_due_ = false;                          // true if the current run is due
};

}  // namespace stepwell
