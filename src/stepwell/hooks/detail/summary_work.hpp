// SPDX-License-Identifier: Apache-2.0
//
// The part of a summary_saver_hook that does not depend on what it writes: cadence and writer.
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

class summary_work {
public:
  /// @errors `invalid_argument_error` with nowhere to write to, or when both periods are off.
  [[nodiscard]] static std::shared_ptr<summary_work> make(const summary_saver_options& options);
  explicit summary_work(const summary_saver_options& options);

  [[nodiscard]] cadence period() const noexcept { return period_; }
  /// Null where only metrics are written. @pre `begin` was called.
  [[nodiscard]] summary::writer* writer() noexcept { return writer_.get(); }
  [[nodiscard]] const std::vector<std::shared_ptr<summary::metric_writer>>& metrics() const noexcept { return metrics_; }

  /// Opens the event file, if there is to be one; writes the hparams.
  void begin();
  /// A session is made, for the first time or anew: it watches the writers, and those nobody else has marked yet get a START
  /// before the next value. A second one in one session would make viewers drop the first values.
  void begin_session(const session_requests& session);
  [[nodiscard]] bool starts() const noexcept { return starts_writer_ || !starts_.empty(); }
  /// Viewers drop what an earlier run wrote from `step` on.
  void note_start(std::int64_t step);

private:
  cadence period_;
  std::string output_dir_;
  summary::writer_options event_options_;
  std::shared_ptr<summary::writer> writer_;
  std::vector<std::shared_ptr<summary::metric_writer>> metrics_;
  std::optional<format::hparam_map> hparams_;
  bool starts_writer_ = false;                   // a START comes before its next value
  std::vector<summary::metric_writer*> starts_;  // the same
};

}  // namespace stepwell
