// SPDX-License-Identifier: Apache-2.0
#include "stepwell/hooks/profiler_hook.hpp"

#include "stepwell/base/cadence.hpp"
#include "stepwell/base/detail/error_collector.hpp"
#include "stepwell/base/error.hpp"
#include "stepwell/base/log.hpp"
#include "stepwell/base/trace.hpp"
#include "stepwell/format/detail/run_metadata.hpp"
#include "stepwell/io/atomic_file.hpp"
#include "stepwell/io/file_system.hpp"
#include "stepwell/protocol/detail/boundary_work.hpp"
#include "stepwell/protocol/session_signals.hpp"

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

namespace detail {

/// The trace recorder of a session, and the files to which it is written.
class profiler_work final : public boundary_work {
public:
  profiler_work(const std::string& directory, std::shared_ptr<io::file_system> files, std::shared_ptr<summary::writer> events)
      : files_(files ? std::move(files) : io::posix_file_system()), events_(std::move(events)),
        directory_(value_or_throw(io::absolute_path(directory))) {}

  /// Connects the work to a session that was created, for the first time or again. In the latter case the recorded spans are kept.
  void attach(const std::shared_ptr<clock>& time, std::shared_ptr<session_signals> signals) {
    signals_ = std::move(signals);
    if (!recorder_ || recorder_->time() != time) { recorder_ = std::make_shared<trace_recorder>(time); }
  }

  [[nodiscard]] const std::shared_ptr<trace_recorder>& recorder() const noexcept { return recorder_; }

  /// Announces that the current traced run has made `step`: its timeline is written when the trace ends.
  void expect(std::int64_t step) noexcept { expected_ = step; }

  void end_trace() override {
    const auto step = std::exchange(expected_, std::nullopt);
    if (!step) { return; }  // the run failed; its spans appear in the next file
    last_ = written_timeline{*step, recorder_->take()};
    write_timeline(*last_);
    add_metadata(*last_);
  }

  /// Writes the remaining spans at the close, when all saves are done. Spans of the saves and of the event file are added to the last
  /// timeline.
  void flush(const deadline& until) override {
    error_collector failures;
    failures.attempt([&] { flush_events(until); });
    failures.attempt([&] { add_late_spans(); });
    last_.reset();
    failures.rethrow();
  }

  void detach() override { events_->detach(); }

private:
  struct written_timeline {
    std::int64_t step;
    run_metadata observed;
  };

  void write_timeline(const written_timeline& all) const {
    const auto path = io::join_path(directory_, fmt::format("timeline-{}.json", all.step));
    const auto written = io::write_file_atomically(*files_, path, format::encode_chrome_trace(all.observed));
    if (!written) { log_warning(fmt::format("the timeline of step {} is not written: {}", all.step, written.error().to_string())); }
  }

  void add_metadata(const written_timeline& all) {
    if (is_alone() && events_->has_failed()) { return; }  // this failure is thrown or logged at the close at the latest
    try {
      add_under_free_tag(*events_, format::encode_run_metadata(all.observed), all.step);
    } catch (const std::exception& failure) {
      if (!is_alone()) { return signals_->report_failure(std::current_exception()); }  // the file is shared with other writers
      log_warning(
          fmt::format("the metadata of step {} and of later steps are not written to the event file: {}", all.step, failure.what()));
    }
  }

  void flush_events(const deadline& until) const {
    try {
      events_->flush(until.on(*events_->time()));
    } catch (const std::exception& failure) {
      if (!is_alone()) { throw; }
      log_warning(fmt::format("{}: the metadata of the last runs are not written: {}", events_->path(), failure.what()));
    }
  }

  void add_late_spans() {
    if (!last_) { return; }
    auto late = recorder_->take();
    if (late.spans.empty()) { return; }
    for (auto& span : late.spans) { last_->observed.spans.push_back(std::move(span)); }
    last_->observed.lost += late.lost;
    write_timeline(*last_);
  }

  [[nodiscard]] bool is_alone() const noexcept { return events_.use_count() == 1; }

  std::shared_ptr<io::file_system> files_;
  std::shared_ptr<summary::writer> events_;
  std::string directory_;
  std::shared_ptr<session_signals> signals_;
  std::shared_ptr<trace_recorder> recorder_;
  std::optional<std::int64_t> expected_;
  std::optional<written_timeline> last_;
};

}  // namespace detail

namespace {

/// @errors Failures to open the event file.
std::shared_ptr<detail::profiler_work> work_in(const std::string& directory, const summary::writer_options& events) {
  return std::make_shared<detail::profiler_work>(directory, events.file_system, summary::writer::shared(directory, events));
}

}  // namespace

profiler_hook::profiler_hook(profiler_options options)
    : period_(require_cadence("profiler_hook", {"save_steps", options.save_steps, "save_secs", options.save_secs}, std::nullopt)),
      events_(std::move(options.events)) {
  if (!options.output_dir.empty()) { work_ = work_in(options.output_dir, events_); }
}

/// Opens the event file of a hook without `output_dir`.
void profiler_hook::open_events(const session_requests& session) {
  if (auto shared = session.event_writer()) {
    work_ = std::make_shared<detail::profiler_work>(session.event_directory(), events_.file_system, std::move(shared));
  } else {
    work_ = work_in(".", events_);
  }
}

void profiler_hook::after_create_session(const session_requests& session, coordinator& /*threads*/) {
  timer_ = second_or_step_timer(period_, session.time());
  is_first_ = true;
  if (!work_) { open_events(session); }
  work_->attach(session.time(), session.signals());
  session.add_work(work_);
}

void profiler_hook::start_trace(const session_requests& session) const { session.trace_into(work_->recorder()); }

void profiler_hook::expect_timeline(std::int64_t step) {
  timer_.update_last_triggered_step(step);
  work_->expect(step);
}

}  // namespace stepwell
