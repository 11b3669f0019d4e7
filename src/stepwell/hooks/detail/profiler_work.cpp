// SPDX-License-Identifier: Apache-2.0
#include "stepwell/hooks/detail/profiler_work.hpp"

#include "stepwell/base/error.hpp"
#include "stepwell/base/log.hpp"
#include "stepwell/format/events/detail/run_metadata.hpp"
#include "stepwell/format/text/detail/chrome_trace.hpp"
#include "stepwell/hook/detail/error_collector.hpp"
#include "stepwell/io/atomic_file.hpp"
#include "stepwell/io/path.hpp"

#include <fmt/format.h>
#include <exception>
#include <utility>

namespace stepwell {
namespace {

/// Adds `bytes` with the first tag of `step_7`, `step_7_2`, `step_7_3`... that the file does not contain. An existing tag belongs to a step
/// that was rolled back, or to another writer.
void add_under_free_tag(summary::writer& events, const std::string& bytes, std::int64_t step) {
  auto tag = fmt::format("step_{}", step);
  for (int count = 2;; ++count) {
    try {
      return events.add_run_metadata(bytes, tag, step);
    } catch (const invalid_argument_error&) {
      if (events.has_failed()) { throw; }  // the file has failed; the tag is not the reason
    }
    tag = fmt::format("step_{}_{}", step, count);
  }
}

}  // namespace

profiler_work::profiler_work(std::string output_dir, summary::writer_options events)
    : files_(events.files), events_(summary::writer::shared(output_dir, std::move(events))), directory_(std::move(output_dir)) {}

void profiler_work::attach(const std::shared_ptr<clock>& time, std::shared_ptr<session_signals> signals) {
  signals_ = std::move(signals);
  if (!recorder_ || recorder_->time() != time) { recorder_ = std::make_shared<trace_recorder>(time); }
}

void profiler_work::end_trace() {
  const auto step = std::exchange(expected_, std::nullopt);
  if (!step) { return; }  // the run failed; its spans appear in the next file
  last_ = written_timeline{*step, recorder_->take()};
  write_timeline(*last_);
  add_metadata(*last_);
}

void profiler_work::write_timeline(const written_timeline& all) const {
  const auto path = io::join_path(directory_, fmt::format("timeline-{}.json", all.step));
  const auto written = io::write_file_atomically(*files_, path, format::encode_chrome_trace(all.observed));
  if (!written) { log_warning(fmt::format("the timeline of step {} is not written: {}", all.step, written.error().to_string())); }
}

void profiler_work::add_metadata(const written_timeline& all) {
  if (is_alone() && events_->has_failed()) { return; }  // this failure is thrown or logged at the close at the latest
  try {
    add_under_free_tag(*events_, format::encode_run_metadata(all.observed), all.step);
  } catch (const std::exception& failure) {
    if (!is_alone()) { return signals_->report_failure(std::current_exception()); }  // the file is shared with other writers
    log_warning(fmt::format("the metadata of step {} and of later steps are not written to the event file: {}", all.step, failure.what()));
  }
}

/// Writes the remaining spans at the close, when all saves are done. Spans of the saves and of the event file are added to the last
/// timeline.
void profiler_work::flush(const deadline& until) {
  detail::error_collector failures;
  failures.attempt([&] { flush_events(until); });
  failures.attempt([&] { add_late_spans(); });
  last_.reset();
  failures.rethrow();
}

void profiler_work::flush_events(const deadline& until) const {
  try {
    events_->flush(until.on(*events_->time()));
  } catch (const std::exception& failure) {
    if (!is_alone()) { throw; }
    log_warning(fmt::format("{}: the metadata of the last runs are not written: {}", events_->path(), failure.what()));
  }
}

void profiler_work::add_late_spans() {
  if (!last_) { return; }
  auto late = recorder_->take();
  if (late.spans.empty()) { return; }
  for (auto& span : late.spans) { last_->observed.spans.push_back(std::move(span)); }
  last_->observed.lost += late.lost;
  write_timeline(*last_);
}

}  // namespace stepwell
