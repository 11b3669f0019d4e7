// SPDX-License-Identifier: Apache-2.0
//
// Shows on a timeline, now and then, what one run is made of (contract HOOK-PROF).
#pragma once

#include "stepwell/base/cadence.hpp"
#include "stepwell/base/setting.hpp"
#include "stepwell/hook/hook.hpp"
#include "stepwell/hook/run_args.hpp"
#include "stepwell/hook/run_options.hpp"
#include "stepwell/hooks/detail/profiler_work.hpp"
#include "stepwell/summary/writer.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace stepwell {

/// Exactly one of the periods; both above zero: seconds are used, with a warning (D-8).
struct profiler_options {
  setting<std::int64_t> save_steps = {};
  setting<seconds_value> save_secs = {};
  /// Where the timelines and the event file go; empty: where the process stands.
  std::string output_dir = {};
  /// How the event file is written; its file system is that of the timelines, too.
  summary::writer_options events = {};
};

/// Traces the due runs of a session. After each, `timeline-STEP.json` in `output_dir` is a whole file for Perfetto and
/// chrome://tracing, and the event file has the run's metadata under the tag `step_STEP`: the points of hooks, the run with
/// what the model opens as `trace_span`, and the boundary with the copy of a snapshot, each with the name of its thread. The
/// first run is never traced.
///
/// * Every due run has its own file, there when the call that made the run returns. Times are since the session began.
/// * What the run started in the background - the encoding and writing of a checkpoint, of summaries - and what ends later
///   than that stands in the next file; when the session closes, the last file is written anew with the rest.
/// * A hook that was asked before this one in a run is not seen asking.
/// * Where a step comes again after a recovery, its file is replaced, and the tag in the event file is `step_STEP_2`.
/// * Trouble with writing is a warning and never ends the training, unless somebody else writes to the same event file: what
///   befalls that is told as ever, at the next boundary.
///
/// @cost Idle: two comparisons a run, in seconds mode a relaxed load too, and a few at each hook's point. A due run waits for the
///       disk.
class profiler_hook {
public:
  static constexpr auto phase = hook_phase::observe;

  /// Opens the event file, so that a directory which cannot be used is known at once (HOOK-PROF-2).
  /// @errors `invalid_argument_error` unless one period is above zero; what opening the file throws.
  explicit profiler_hook(profiler_options options);

  void after_create_session(auto& session, auto& /*threads*/) {
    timer_ = second_or_step_timer(period_, session.time());
    is_first_ = true;
    work_->attach(session.time(), session.signals());
    session.add_work(work_);
  }

  std::optional<run_args<fetch_pack<>, feed_pack<>, run_options>> before_run(auto& context) {
    step_before_ = context.global_step();
    is_due_ = !is_first_ && timer_.should_trigger_for_step(step_before_ + 1);
    if (!is_due_) [[likely]] { return std::nullopt; }
    context.trace_into(work_->recorder());
    return run_args{.options = run_options{.trace_level = trace_level::full}};
  }

  void after_run(auto& context, const auto&) {
    if (is_due_) [[unlikely]] {
      timer_.update_last_triggered_step(context.global_step());
      work_->expect(context.global_step());
    } else if (is_first_) [[unlikely]] {
      timer_.update_last_triggered_step(step_before_);
      is_first_ = false;
    }
  }

private:
  cadence period_;
  second_or_step_timer timer_;
  std::shared_ptr<profiler_work> work_;
  std::int64_t step_before_ = 0;  // the run under way
  bool is_first_ = true;          // no run of this session is done
  bool is_due_ = false;           // the run under way is
};

}  // namespace stepwell
