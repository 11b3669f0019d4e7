// SPDX-License-Identifier: Apache-2.0
//
// From the options of a training session to its default hooks (contract CREATE-2 to CREATE-10).
#pragma once

#include "stepwell/hooks/checkpoint_saver_hook.hpp"
#include "stepwell/hooks/step_counter_hook.hpp"
#include "stepwell/hooks/summary_saver_hook.hpp"
#include "stepwell/session/session_settings.hpp"
#include "stepwell/training/training_options.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stepwell {

/// The result and model of a run, as one fetch.
struct whole_run {
  template<class Result, class Model>
  auto operator()(const Result& result, const Model& model) const {
    return std::pair<const Result*, const Model*>(&result, &model);
  }
};

/// Writes what the `summary` option says.
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

/// The part of the options that does not depend on the model.
struct plain_options {
  std::string checkpoint_dir;
  std::string summary_dir;
  setting<seconds_value> save_checkpoint_secs;
  setting<std::int64_t> save_checkpoint_steps;
  setting<seconds_value> save_summaries_secs;
  setting<std::int64_t> save_summaries_steps;
  setting<std::int64_t> log_step_count_steps;
  setting<int> max_to_keep;
  saver_options saver;
  std::shared_ptr<clock> time;
  std::vector<std::shared_ptr<summary::metric_writer>> metrics;
  std::optional<format::hparam_map> hparams;
  std::vector<std::shared_ptr<checkpoint_saver_listener>> listeners;
};
[[nodiscard]] checkpoint_saver_hook make_checkpoint_saver_hook(const plain_options& options);
[[nodiscard]] step_counter_hook make_step_counter_hook(const plain_options& options);
/// Options of the summary hook; nothing when it is off.
[[nodiscard]] std::optional<summary_saver_options> make_summary_options(const plain_options& options);
/// Where a session starts from: through the saver, which then keeps that checkpoint, or straight from the directory.
[[nodiscard]] std::function<std::optional<checkpoint_reader>()> make_checkpoint_finder(const plain_options& options,
                                                                                       const checkpoint_saver_hook& saver);

/// @errors `invalid_argument_error` for metrics without event files to take them from.
void check_metrics(const plain_options& options);
/// Nothing where it is off.
[[nodiscard]] std::optional<clock::duration> grace_of_process(const setting<seconds_value>& said);

/// @errors `invalid_argument_error` where both the option and what the scaffold has in its place are given.
void refuse_both(std::string_view option, std::string_view of_scaffold, bool both);
/// @errors `invalid_argument_error` naming what makes no sense together, or at all.
void check_roles(const std::string& master, bool is_chief, seconds_value max_wait, seconds_value recovery_wait);

template<class Model>
[[nodiscard]] plain_options plain_options_of(const training_options<Model>& options) {
  check_roles(options.master, options.is_chief, options.max_wait_secs, options.recovery_wait);
  if (!options.is_chief) {
    plain_options nothing;
    nothing.time = options.clock ? options.clock : system_clock();
    return nothing;
  }
  plain_options plain{.checkpoint_dir = options.checkpoint_dir,
                      .summary_dir = options.summary_dir.empty() ? options.checkpoint_dir : options.summary_dir,
                      .save_checkpoint_secs = options.save_checkpoint_secs,
                      .save_checkpoint_steps = options.save_checkpoint_steps,
                      .save_summaries_secs = options.save_summaries_secs,
                      .save_summaries_steps = options.save_summaries_steps,
                      .log_step_count_steps = options.log_step_count_steps,
                      .max_to_keep = options.max_to_keep,
                      .saver = options.saver,
                      .time = options.clock ? options.clock : system_clock(),
                      .metrics = options.metrics,
                      .hparams = options.hparams,
                      .listeners = options.checkpoint_listeners};
  check_metrics(plain);
  if (options.scaffold && options.scaffold->saver()) { plain.saver = *options.scaffold->saver(); }
  if (!plain.saver.clock) { plain.saver.clock = plain.time; }
  if (!plain.saver.pool) { plain.saver.pool = options.config.io; }
  return plain;
}

template<class Model>
[[nodiscard]] default_summary_hook<Model> make_summary_hook(const plain_options& plain, const training_options<Model>& options) {
  summary_option_op<Model> op{whole_run{}, options.summary};
  if (options.scaffold && options.scaffold->summary_op()) {
    refuse_both("summary", "summary_op", options.summary != nullptr);
    op.write_all = options.scaffold->summary_op();
  }
  auto made = make_summary_options(plain);
  if (!made) { return default_summary_hook<Model>::off(std::move(op)); }
  return default_summary_hook<Model>(std::move(*made), std::move(op));
}

}  // namespace stepwell
