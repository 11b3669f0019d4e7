// SPDX-License-Identifier: Apache-2.0
#include "stepwell/training/monitored_training_session.hpp"

#include "stepwell/base/cadence.hpp"
#include "stepwell/base/error.hpp"
#include "stepwell/base/log.hpp"
#include "stepwell/checkpoint/detail/checkpoint_directory.hpp"
#include "stepwell/hooks/detail/save_budget.hpp"

#include <fmt/format.h>
#include <chrono>
#include <string_view>
#include <vector>

namespace stepwell::detail {

namespace {

void check_roles(const training_options& options) {
  if (!options.is_chief && options.master.empty() && !options.group) {
    throw invalid_argument_error(
        "monitored_training_session: is_chief is false and master is empty; a worker needs the master whose chief it waits for, e.g. "
        "master = \"local:NAME\"");
  }
  refuse_negative("intra_op_parallelism_threads", options.config.intra_op_parallelism_threads);
  refuse_negative("inter_op_parallelism_threads", options.config.inter_op_parallelism_threads);
  if (!(options.max_wait_secs.count() >= 0)) {
    throw invalid_argument_error(
        fmt::format("monitored_training_session: max_wait_secs is {}; it cannot be negative", options.max_wait_secs.count()));
  }
  if (!(options.recovery_wait.count() > 0)) {
    throw invalid_argument_error(
        fmt::format("monitored_training_session: recovery_wait is {}; it must be above zero", options.recovery_wait.count()));
  }
}

/// Checks that a chief has the directories that its options and its summaries need. `of_checkpoints` are its options of checkpoints, as they
/// were given.
void check_directories(const training_options& options, const std::vector<named_option>& of_checkpoints, bool has_summaries) {
  const auto refuse_given = [](const std::vector<named_option>& all, std::string_view missing) {
    for (const auto& [name, is_given] : all) {
      if (!is_given) { continue; }
      throw invalid_argument_error(
          fmt::format("monitored_training_session: {} is given, but {}; without it, the option has no effect", name, missing));
    }
  };
  if (!options.is_chief || !options.checkpoint_dir.empty()) { return; }
  refuse_given(of_checkpoints, "checkpoint_dir is not, the directory of the checkpoints");
  if (!options.summary_dir.empty()) { return; }
  const auto* const no_events = "neither summary_dir nor checkpoint_dir, one of which holds the event files";
  refuse_given({{"summaries", has_summaries}}, no_events);
  refuse_given(options_of_events(options), no_events);
}

}  // namespace

void complete(training_options& options, const std::optional<saver_options>& of_scaffold, bool has_summaries) {
  resolve_role(options);
  const auto of_checkpoints = options_of_checkpoints(options);  // a scaffold may serve sessions without a directory, too
  auto& saver = options.saver;
  if (of_scaffold) { saver = *of_scaffold; }
  if (!options.max_to_keep.is_default()) { saver.max_to_keep = options.max_to_keep; }
  if (!options.clock) { options.clock = system_clock(); }
  if (!saver.clock) { saver.clock = options.clock; }
  if (!saver.pool) { saver.pool = options.config.io; }
  check_saver_options(saver);
  check_roles(options);
  refuse_negative("log_step_count_steps", options.log_step_count_steps);
  refuse_negative("log_every_secs", options.log_every_secs);
  refuse_negative("max_to_keep", options.max_to_keep);
  check_bounds(options.save_checkpoint_interval);
  check_directories(options, of_checkpoints, has_summaries);
  resolve_directories(options);
  if (options.checkpoint_dir.empty()) { return; }
  const auto use = options.group ? io::fence_use::always : io::fence_use::if_not_lockable;
  saver.file_system = with_fence(std::move(saver.file_system), options.checkpoint_dir, use);
}

step_counter_hook default_hooks::counter(const training_options& options) {
  auto period = choose_cadence({"log_step_count_steps", options.log_step_count_steps, {}, {}}, step_counter_hook::default_period);
  if (options.summary_dir.empty()) { period.reset(); }
  return step_counter_hook({.output_dir = options.summary_dir, .events = event_options(options), .log_every_secs = options.log_every_secs},
                           period);
}

std::shared_ptr<summary_work> default_hooks::work_of_summaries(const training_options& options) {
  const log_scope named(options.name);
  const auto period =
      choose_cadence({"save_summaries_steps", options.save_summaries_steps, "save_summaries_secs", options.save_summaries_secs},
                     summary_work::default_period);
  if (!period || options.summary_dir.empty()) { return nullptr; }
  return std::make_shared<summary_work>(summary_saver_options{.output_dir = options.summary_dir,
                                                              .events = event_options(options),
                                                              .at_end = options.save_summaries_at_end,
                                                              .check_variables = options.check_summaries,
                                                              .hparams = options.hparams},
                                        *period);
}

checkpoint_saver_hook default_hooks::saver(const training_options& options, bool is_deferred) {
  constexpr cadence default_period{.every_secs = std::chrono::seconds(600)};  // contract CREATE-3
  const log_scope named(options.name);
  const auto when =
      choose_saves({{"save_checkpoint_steps", options.save_checkpoint_steps, "save_checkpoint_secs", options.save_checkpoint_secs},
                    "save_checkpoint_overhead",
                    options.save_checkpoint_overhead,
                    "save_checkpoint_interval",
                    options.save_checkpoint_interval},
                   default_period);
  if (!when || options.checkpoint_dir.empty()) { return checkpoint_saver_hook::off(); }
  checkpoint_saver_hook made({.checkpoint_dir = options.checkpoint_dir,
                              .saver = options.saver,
                              .listeners = options.checkpoint_listeners,
                              .summary_dir = options.summary_dir,
                              .events = event_options(options),
                              .log_every_secs = options.log_every_secs},
                             *when);
  if (!is_deferred) { static_cast<void>(made.saver()); }  // locks the directory
  return made;
}

session_setup setup_with(const training_options& options, const checkpoint_saver_hook& saver) {
  session_setup made;  // assigned one by one: with one initialiser clang-tidy 19 reports a leak of find_checkpoint
  made.options = options;
  if (saver.is_on()) { made.find_checkpoint = saver.checkpoint_finder(); }
  made.restores_what_it_saves = saver.is_on();
  return made;
}

void throw_both_given() {
  throw invalid_argument_error(
      "monitored_training_session: both a function in summaries() and the scaffold's summary_op are given; give one of them");
}

}  // namespace stepwell::detail
