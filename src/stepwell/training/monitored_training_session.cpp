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

/// Returns true if the options name a place for the summaries.
bool has_destination(const summary_saver_options& summaries) {
  return !summaries.output_dir.empty() || summaries.writer || !summaries.metrics.empty();
}

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

/// Checks that a chief has the directories that its options and its summaries need. `of_checkpoints` are its options of checkpoints that
/// were given.
void check_directories(const training_options& options, const std::vector<std::string>& of_checkpoints, bool has_summaries) {
  const auto refuse_given = [](const std::vector<std::string>& given, std::string_view missing) {
    if (given.empty()) { return; }
    throw invalid_argument_error(
        fmt::format("monitored_training_session: {} is given, but {}; without it, the option has no effect", given.front(), missing));
  };
  if (!options.is_chief || !options.checkpoint_dir.empty()) { return; }
  refuse_given(of_checkpoints, "checkpoint_dir is not, the directory of the checkpoints");
  if (!options.summary_dir.empty() || has_destination(options.summaries)) { return; }
  const auto* const no_events = "neither summary_dir nor checkpoint_dir, one of which holds the event files";
  if (has_summaries) { refuse_given({"summaries"}, no_events); }
  refuse_given(given_for_events(options), no_events);
}

}  // namespace

void complete(training_options& options, const std::optional<saver_options>& of_scaffold, bool has_summaries) {
  resolve_role(options);
  const auto of_checkpoints = given_for_checkpoints(options);  // a scaffold may serve sessions without a directory, too
  auto& saves = options.saves;
  auto& saver = saves.saver;
  if (of_scaffold) { saver = *of_scaffold; }
  if (!options.clock) { options.clock = system_clock(); }
  if (!saver.clock) { saver.clock = options.clock; }
  if (!saver.pool) { saver.pool = options.config.io; }
  check_saver_options(saver);
  check_roles(options);
  refuse_negative("step_counter.log_every_secs", options.step_counter.log_every_secs);
  refuse_negative("saves.log_every_secs", saves.log_every_secs);
  check_bounds(saves.save_interval);
  check_directories(options, of_checkpoints, has_summaries);
  if (!saves.checkpoint_dir.empty()) {
    throw invalid_argument_error(
        "monitored_training_session: saves.checkpoint_dir is given; a training session saves in checkpoint_dir, from which it restores");
  }
  resolve_directories(options);
  if (options.checkpoint_dir.empty()) { return; }
  const auto use = options.group ? io::fence_use::always : io::fence_use::if_not_lockable;
  saver.file_system = with_fence(std::move(saver.file_system), options.checkpoint_dir, use);
}

step_counter_hook default_hooks::counter(const training_options& options) {
  auto counter = options.step_counter;
  auto period = choose_cadence({"step_counter.every_n_steps", counter.every_n_steps, "step_counter.every_n_secs", counter.every_n_secs},
                               step_counter_hook::default_period);
  counter.events = event_options(options, std::move(counter.events));
  if (counter.output_dir.empty()) { counter.output_dir = options.summary_dir; }
  if (!options.is_chief || (counter.output_dir.empty() && !counter.writer)) { period.reset(); }
  return step_counter_hook(std::move(counter), period);
}

std::shared_ptr<summary_work> default_hooks::work_of_summaries(const training_options& options) {
  const log_scope named(options.name);
  auto summaries = options.summaries;
  const auto period = choose_cadence({"summaries.save_steps", summaries.save_steps, "summaries.save_secs", summaries.save_secs},
                                     summary_work::default_period);
  if (summaries.output_dir.empty() && !summaries.writer) { summaries.output_dir = options.summary_dir; }
  if (!options.is_chief || !period || !has_destination(summaries)) { return nullptr; }
  summaries.events = event_options(options, std::move(summaries.events));
  return std::make_shared<summary_work>(std::move(summaries), *period);
}

checkpoint_saver_hook default_hooks::saver(const training_options& options, bool is_deferred) {
  constexpr cadence default_period{.every_secs = std::chrono::seconds(600)};  // contract CREATE-3
  const log_scope named(options.name);
  auto saves = options.saves;
  const auto when = choose_saves({{"saves.save_steps", saves.save_steps, "saves.save_secs", saves.save_secs},
                                  "saves.save_overhead",
                                  saves.save_overhead,
                                  "saves.save_interval",
                                  saves.save_interval},
                                 default_period);
  if (!when || options.checkpoint_dir.empty()) { return checkpoint_saver_hook::off(); }
  saves.checkpoint_dir = options.checkpoint_dir;
  if (saves.summary_dir.empty()) { saves.summary_dir = options.summary_dir; }
  saves.events = event_options(options, std::move(saves.events));
  checkpoint_saver_hook made(saves, *when);
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
