// SPDX-License-Identifier: Apache-2.0
//
// A hook that writes summaries at the first run and at every due run.
// @see contract HOOK-SUM, D-5
#pragma once

#include "stepwell/base/cadence.hpp"
#include "stepwell/base/setting.hpp"
#include "stepwell/hook/fetch.hpp"
#include "stepwell/hook/hook.hpp"
#include "stepwell/hooks/detail/summary_work.hpp"
#include "stepwell/hooks/summary_ops.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace stepwell {

/// Options of `summary_saver_hook`. One of directory, writer and metrics is required. The default period is 100 steps.
struct summary_saver_options {
  std::string output_dir = {};
  std::shared_ptr<summary::writer> writer = nullptr;  ///< Used instead of `output_dir`.
  summary::writer_options events = {};                ///< Options of the event file in `output_dir`.
  /// Additional or only destinations of the scalars: `{std::make_shared<summary::csv_writer>("run/metrics.csv")}`. Do not list writers to
  /// which the event writer forwards already (`writer_options::metrics`). Histograms, texts and images are written to event files only.
  std::vector<std::shared_ptr<summary::metric_writer>> metrics = {};
  setting<std::int64_t> save_steps = {};
  setting<seconds_value> save_secs = {};
  /// The settings of this run for the HParams dashboard, written to the event file once, when the session begins.
  std::optional<format::hparam_map> hparams = std::nullopt;
};

/// Writes the values of summary ops: `summary_saver_hook{{.output_dir = "run"}, summary::scalar("loss", &result::loss)}`. Values are
/// fetched only in the runs that write. They are added to the writer's queue; the step does not write to the disk.
/// @cost An idle run: one comparison, and in seconds mode one relaxed load.
template<summary::summary_op... Ops>
class summary_saver_hook {
  static_assert(sizeof...(Ops) > 0,
                "stepwell: summary_saver_hook has nothing to write; give it summary::scalar(\"loss\", "
                "&result::loss), or another function of summary::");

public:
  static constexpr auto phase = hook_phase::observe;

  /// @errors `invalid_argument_error` if there is no destination, or if both periods are off.
  explicit summary_saver_hook(const summary_saver_options& options, Ops... ops)
      : summary_saver_hook(summary_work::make(options), std::move(ops)...) {}
  /// Uses existing work. Null: the hook writes nothing, for sessions in which summaries are optional.
  explicit summary_saver_hook(std::shared_ptr<summary_work> work, Ops... ops) : work_(std::move(work)), ops_(std::move(ops)...) {}

  void begin() {
    if (work_) { work_->begin(); }
  }

  void after_create_session(auto& session, auto& /*threads*/) {
    if (!work_) { return; }
    timer_ = second_or_step_timer(work_->period(), session.time());
    work_->begin_session(session);
  }

  auto before_run(auto& context) {
    is_due_ = timer_.should_trigger_for_step(context.global_step() + 1);
    return is_due_ ? std::optional(wanted()) : std::nullopt;
  }

  void after_run(auto& context, const auto& values) {
    if (is_due_) [[unlikely]] { write(context.global_step(), values, std::index_sequence_for<Ops...>{}); }
  }

private:
  auto wanted() const {
    return std::apply([](const Ops&... op) { return stepwell::fetch(op.projection...); }, ops_);
  }

  template<std::size_t... I>
  void write(std::int64_t step, const auto& values, std::index_sequence<I...>) {
    if (work_->starts()) { work_->note_start(step); }
    timer_.update_last_triggered_step(step);
    if (auto* const out = work_->writer()) { (std::get<I>(ops_).write(*out, values.template get<I>(), step), ...); }
    for (const auto& metric : work_->metrics()) { (write_metric(*metric, std::get<I>(ops_), values.template get<I>(), step), ...); }
  }
  static void write_metric(summary::metric_writer& out, const auto& op, const auto& value, std::int64_t step) {
    if constexpr (requires { op.write(out, value, step); }) { op.write(out, value, step); }
  }

  std::shared_ptr<summary_work> work_;
  std::tuple<Ops...> ops_;
  second_or_step_timer timer_;
  bool is_due_ = false;
};

template<class... Ops>
summary_saver_hook(summary_saver_options, Ops...) -> summary_saver_hook<Ops...>;

}  // namespace stepwell
