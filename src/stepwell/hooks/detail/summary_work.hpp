// SPDX-License-Identifier: Apache-2.0
//
// The part of a summary_saver_hook that does not depend on its ops: cadence and writers.
#pragma once

#include "stepwell/base/cadence.hpp"
#include "stepwell/hooks/detail/writer_work.hpp"
#include "stepwell/summary/metric_writer.hpp"
#include "stepwell/summary/writer.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace stepwell {

struct summary_saver_options;

/// The cadence and the writers of a summary_saver_hook.
class summary_work {
public:
  /// @errors `invalid_argument_error` if there is no destination, or if both periods are off.
  [[nodiscard]] static std::shared_ptr<summary_work> make(const summary_saver_options& options);
  explicit summary_work(const summary_saver_options& options);

  [[nodiscard]] cadence period() const noexcept { return period_; }
  /// Returns the event writer. Null if only metrics are written.
  /// @pre `begin` was called.
  [[nodiscard]] summary::writer* writer() noexcept { return writer_.get(); }
  [[nodiscard]] const std::vector<std::shared_ptr<summary::metric_writer>>& metrics() const noexcept { return metrics_; }

  /// Opens the event file, if one is used, and writes the hyper-parameters.
  void begin();
  /// Registers the writers with a session that was created, for the first time or again. Writers that no other hook of the session has
  /// claimed get a START record before the next value. A second START in one session would make viewers drop the first values.
  void begin_session(const session_requests& session);
  [[nodiscard]] bool starts() const noexcept { return starts_writer_ || !starts_.empty(); }
  /// Writes the START records. Viewers drop values that an earlier run wrote from `step` on.
  void note_start(std::int64_t step);

private:
  cadence period_;
  std::string output_dir_;
  summary::writer_options event_options_;
  std::shared_ptr<summary::writer> writer_;
  std::vector<std::shared_ptr<summary::metric_writer>> metrics_;
  std::optional<format::hparam_map> hparams_;
  bool starts_writer_ = false;                   // the writer needs a START record before its next value
  std::vector<summary::metric_writer*> starts_;  // metric writers that need a START record
};

}  // namespace stepwell
