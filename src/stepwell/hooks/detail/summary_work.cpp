// SPDX-License-Identifier: Apache-2.0
#include "stepwell/hooks/detail/summary_work.hpp"

#include "stepwell/base/cadence_setting.hpp"
#include "stepwell/base/error.hpp"
#include "stepwell/hooks/summary_saver_hook.hpp"

#include <utility>

namespace stepwell {
namespace {

/// Writes the result of the run to which the hyper-parameters of a writer belong.
/// @see contract D-33
class hparams_ending final : public boundary_work {
public:
  explicit hparams_ending(std::shared_ptr<summary::writer> writer) : writer_(std::move(writer)) {}

  void write_ending(session_ending how) override {
    if (how == session_ending::finished) { writer_->add_hparams_end(format::hparams_status::success); }
    if (how == session_ending::failed) { writer_->add_hparams_end(format::hparams_status::failure); }
  }

private:
  std::shared_ptr<summary::writer> writer_;
};

}  // namespace

summary_work::summary_work(const summary_saver_options& options)
    : output_dir_(options.output_dir), event_options_(options.events), writer_(options.writer), metrics_(options.metrics),
      hparams_(options.hparams) {
  const auto period = choose_cadence({"save_steps", options.save_steps, "save_secs", options.save_secs}, cadence{.every_steps = 100});
  if (!period) { throw invalid_argument_error("summary_saver_hook: one of save_steps and save_secs must be above zero"); }
  if (output_dir_.empty() && !writer_ && metrics_.empty()) {
    throw invalid_argument_error("summary_saver_hook: one of output_dir, writer and metrics must be given");
  }
  period_ = *period;
}

std::shared_ptr<summary_work> summary_work::make(const summary_saver_options& options) { return std::make_shared<summary_work>(options); }

void summary_work::begin() {
  if (!writer_ && !output_dir_.empty()) { writer_ = summary::writer::shared(output_dir_, event_options_); }
  if (hparams_ && writer_) { writer_->add_hparams(*hparams_); }
}

void summary_work::begin_session(const session_requests& session) {
  starts_writer_ = writer_ && session.claim(writer_.get());
  if (writer_) { watch_writer(session, writer_); }
  if (writer_ && hparams_) {
    session.add_work_for(this, [this] { return std::make_shared<hparams_ending>(writer_); });
  }
  starts_.clear();
  for (const auto& metric : metrics_) {
    if (session.claim(metric.get())) { starts_.push_back(metric.get()); }
    watch_writer(session, metric);
  }
}

void summary_work::note_start(std::int64_t step) {
  if (std::exchange(starts_writer_, false)) { writer_->add_session_log(format::session_status::start, step); }
  for (auto* metric : std::exchange(starts_, {})) { metric->add_start(step); }
}

}  // namespace stepwell
