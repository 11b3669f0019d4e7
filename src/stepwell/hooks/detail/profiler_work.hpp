// SPDX-License-Identifier: Apache-2.0
//
// The work of a session for a profiler_hook, at the end of a traced run and at the close.
#pragma once

#include "stepwell/base/clock.hpp"
#include "stepwell/base/run_metadata.hpp"
#include "stepwell/base/trace.hpp"
#include "stepwell/hook/boundary.hpp"
#include "stepwell/hook/session_signals.hpp"
#include "stepwell/io/file_system.hpp"
#include "stepwell/summary/writer.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace stepwell {

/// The trace recorder of a session, and the files to which it is written.
class profiler_work final : public boundary_work {
public:
  /// @errors Failures to open the event file.
  profiler_work(std::string output_dir, summary::writer_options events);

  /// Connects the work to a session that was created, for the first time or again. In the latter case the recorded spans are kept.
  void attach(const std::shared_ptr<clock>& time, std::shared_ptr<session_signals> signals);
  [[nodiscard]] const std::shared_ptr<trace_recorder>& recorder() const noexcept { return recorder_; }

  /// Announces that the current traced run has made `step`: its timeline is written when the trace ends.
  void expect(std::int64_t step) noexcept { expected_ = step; }

  void end_trace() override;
  void flush(const deadline& until) override;
  void detach() override { events_->detach(); }

private:
  struct written_timeline {
    std::int64_t step;
    run_metadata observed;
  };

  void write_timeline(const written_timeline& all) const;
  void add_metadata(const written_timeline& all);
  void flush_events(const deadline& until) const;
  void add_late_spans();
  [[nodiscard]] bool is_alone() const noexcept { return events_.use_count() == 1; }

  std::shared_ptr<io::file_system> files_;
  std::shared_ptr<summary::writer> events_;
  std::string directory_;
  std::shared_ptr<session_signals> signals_;
  std::shared_ptr<trace_recorder> recorder_;
  std::optional<std::int64_t> expected_;
  std::optional<written_timeline> last_;
};

}  // namespace stepwell
