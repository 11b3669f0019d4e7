// SPDX-License-Identifier: Apache-2.0
//
// Creates the default hooks of a training session from its options.
// @see contract CREATE-2 to CREATE-10
#pragma once

#include "stepwell/hooks/checkpoint_saver_hook.hpp"
#include "stepwell/hooks/step_counter_hook.hpp"
#include "stepwell/hooks/summary_saver_hook.hpp"
#include "stepwell/session/session_settings.hpp"
#include "stepwell/training/training_options.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stepwell {

/// A fetch of both the result and the model of a run.
struct whole_run {
  template<class Result, class Model>
  auto operator()(const Result& result, const Model& model) const {
    return std::pair<const Result*, const Model*>(&result, &model);
  }
};

/// The summary op that calls the `summary` option.
template<class Model>
struct summary_option_op {
  whole_run projection;
  decltype(training_options<Model>::summary) write_all;

  void write(summary::writer& out, const auto& run, std::int64_t step) const {
    if (write_all) { write_all(out, *run.first, *run.second, step); }
  }
};

template<class Model>
using default_summary_hook = summary_saver_hook<summary_option_op<Model>>;

/// The options that do not depend on the model type, so that code using them is compiled once.
/// @lifetime Refers to the options.
struct plain_options {
  bool is_chief;
  const std::string& checkpoint_dir;
  const std::string& summary_dir;
  const setting<seconds_value>& save_checkpoint_secs;
  const setting<std::int64_t>& save_checkpoint_steps;
  const setting<seconds_value>& save_summaries_secs;
  const setting<std::int64_t>& save_summaries_steps;
  const setting<std::int64_t>& log_step_count_steps;
  const setting<int>& max_to_keep;
  const saver_options& saver;  ///< Of the scaffold, if it has any; else of the options.
  const session_config& config;
  const std::vector<std::shared_ptr<summary::metric_writer>>& metrics;
  const std::optional<format::hparam_map>& hparams;
  const std::vector<std::shared_ptr<checkpoint_saver_listener>>& listeners;
  const retry_policy& retry;
  unseekable_policy on_unseekable;
  const std::vector<std::shared_ptr<queue_runner>>& queue_runners;
  seconds_value stop_grace_period;
  const std::stop_token& stop_token;
  const std::vector<int>& stop_on;
  const setting<seconds_value>& preemption_grace;
  const std::shared_ptr<stepwell::clock>& clock;
};
/// Return the default hooks. A hook that the options turn off, or that belongs to a worker, does nothing. If `is_deferred` is true,
/// the saver hook takes the directory when the session begins.
[[nodiscard]] checkpoint_saver_hook make_checkpoint_saver_hook(const plain_options& options, bool is_deferred);
[[nodiscard]] step_counter_hook make_step_counter_hook(const plain_options& options);
/// Returns the part of the summary hook that is independent of its ops, or null if the hook is off.
[[nodiscard]] std::shared_ptr<summary_work> make_summary_work(const plain_options& options);
/// Returns the settings of the session. The session restores from the directory of `saver`, whose retention then keeps that
/// checkpoint, or directly from `checkpoint_dir` if `saver` is off.
[[nodiscard]] session_settings make_session_settings(const plain_options& options, const checkpoint_saver_hook& saver);

/// Checks that an option and its replacement in the scaffold are not given together.
/// @errors `invalid_argument_error` if both are given.
void refuse_both(std::string_view option, std::string_view of_scaffold, bool both);
/// Checks counts and durations.
/// @errors `invalid_argument_error` naming a count or duration below zero, whether it is used or not.
void refuse_negative_options(const plain_options& options);
/// Checks the options for master and roles.
/// @errors `invalid_argument_error` naming an invalid value or combination.
void check_roles(const std::string& master, bool is_chief, seconds_value max_wait, seconds_value recovery_wait);

template<class Model>
[[nodiscard]] plain_options plain_options_of(const training_options<Model>& options) {
  check_roles(options.master, options.is_chief, options.max_wait_secs, options.recovery_wait);
  const auto& scaffold = options.scaffold;
  return {.is_chief = options.is_chief,
          .checkpoint_dir = options.checkpoint_dir,
          .summary_dir = options.summary_dir.empty() ? options.checkpoint_dir : options.summary_dir,
          .save_checkpoint_secs = options.save_checkpoint_secs,
          .save_checkpoint_steps = options.save_checkpoint_steps,
          .save_summaries_secs = options.save_summaries_secs,
          .save_summaries_steps = options.save_summaries_steps,
          .log_step_count_steps = options.log_step_count_steps,
          .max_to_keep = options.max_to_keep,
          .saver = scaffold && scaffold->saver() ? *scaffold->saver() : options.saver,
          .config = options.config,
          .metrics = options.metrics,
          .hparams = options.hparams,
          .listeners = options.checkpoint_listeners,
          .retry = options.retry,
          .on_unseekable = options.on_unseekable,
          .queue_runners = options.queue_runners,
          .stop_grace_period = options.stop_grace_period_secs,
          .stop_token = options.stop_token,
          .stop_on = options.stop_on,
          .preemption_grace = options.preemption_grace,
          .clock = options.clock};
}

template<class Model>
[[nodiscard]] default_summary_hook<Model> make_summary_hook(const plain_options& plain, const training_options<Model>& options) {
  summary_option_op<Model> op{whole_run{}, options.summary};
  if (options.scaffold && options.scaffold->summary_op()) {
    refuse_both("summary", "summary_op", options.summary != nullptr);
    op.write_all = options.scaffold->summary_op();
  }
  return default_summary_hook<Model>(make_summary_work(plain), std::move(op));
}

}  // namespace stepwell
