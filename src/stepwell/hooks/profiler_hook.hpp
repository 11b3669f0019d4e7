// SPDX-License-Identifier: Apache-2.0
//
// A hook that records timelines of single runs. A timeline shows the duration and the thread of each activity.
// @see contract HOOK-PROF
#pragma once

#include "stepwell/base/cadence.hpp"
#include "stepwell/protocol/hook.hpp"
#include "stepwell/protocol/run_args.hpp"
#include "stepwell/protocol/run_context.hpp"
#include "stepwell/protocol/run_options.hpp"
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
  /// Periods between traced runs. A traced run is a run of which a timeline is recorded.
  setting<std::int64_t> save_steps = {};
  setting<seconds_value> save_secs = {};
  /// The directory of the timelines and of the event file. If empty, the session's directory of event files is used. If the session has no
  /// such directory either, the current directory of the process is used.
  std::string output_dir = {};
  /// Options of the event file. They have no effect on an event file that is open already, such as that of the session. The timelines are
  /// written with the file system `events.file_system` in any case.
  summary::writer_options events = {};
};

/// Traces one run in each period. After a traced run, `timeline-STEP.json` in the directory of the hook is a complete file for Perfetto and
/// chrome://tracing, and the event file contains the run's metadata with the tag `step_STEP`. Both contain the following spans, each with
/// the name of its thread: the calls of hooks; the run; each `trace_span` that the model opens; the boundary after the run (the work
/// between two steps); and, within the boundary, the copy of a snapshot. The first run of a session, and the first run after a recovery, is
/// never traced.
///
/// * Every traced run has its own timeline file. The file exists when the call that executed the run returns. Times are relative to the
///   beginning of the session.
/// * Spans that end after the file was written appear in the next file. These are mostly spans of background work that the run started,
///   such as writing a checkpoint or summaries. When the session closes, the last file is written again with the remaining spans.
/// * A trace begins in the `before_run` of this hook. If the session calls `before_run` of another hook earlier, this earlier call is not
///   recorded.
/// * If the same step is traced again after a recovery, its file is replaced, and the tag in the event file is `step_STEP_2`.
/// * If a file cannot be written, a warning is logged, and training continues. This does not apply to an event file to which other hooks
///   write, too: after a failure to write such a file, the session fails before its next step, as after other failures of background work.
///
/// @cost A run that is not traced: one relaxed load, two comparisons, and a few comparisons at each call of a hook. A traced run blocks on
///   the disk.
class profiler_hook {
public:
  static constexpr auto phase = hook_phase::observe;

  /// Opens the event file in `output_dir`, so an unusable directory is detected here. If `output_dir` is empty, this constructor opens no
  /// file: the event file is opened when the session is created.
  /// @errors `invalid_argument_error` unless a period is above zero. Failures to open the event file.
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
  bool is_first_ = true;                         // true between each creation of the session and the end of the first run after it
  bool is_due_ = false;                          // true if the current run is due
};

}  // namespace stepwell
